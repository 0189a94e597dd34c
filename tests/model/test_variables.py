"""Variables of the environment set the fields of any model."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from extender.model.variables import overlay, variables


class Inner(BaseModel):
    deep_field: int = 0


class Outer(BaseModel):
    plain: str = ""
    names: tuple[str, ...] = ()
    inner: Inner | None = None


def applied(
    environ: dict[str, str], values: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[str]]:
    values = values or {}
    complaints = overlay(values, Outer, environ, "X__")
    return values, complaints


def test_every_field_that_is_no_section_has_a_variable() -> None:
    assert variables(Outer, "X__") == {
        "X__PLAIN": ("plain",),
        "X__NAMES": ("names",),
        "X__INNER__DEEP_FIELD": ("inner", "deep_field"),
    }


def test_a_nested_field_is_set_beside_what_is_there() -> None:
    values, complaints = applied({"X__INNER__DEEP_FIELD": "3"}, {"inner": {"other": 1}})
    assert (values, complaints) == ({"inner": {"other": 1, "deep_field": "3"}}, [])


def test_a_list_is_json_and_a_text_is_not() -> None:
    assert applied({"X__NAMES": '["a"]', "X__PLAIN": '["a"]'})[0] == {"names": ["a"], "plain": '["a"]'}


def test_what_cannot_be_used_is_named() -> None:
    complaints = applied({"X__NAMES": "a,b", "X__PLANE": "x", "OTHER": "y"})[1]
    assert [complaint.split(": ")[0] for complaint in complaints] == [
        "variable X__NAMES",
        "variable X__PLANE",
    ]
