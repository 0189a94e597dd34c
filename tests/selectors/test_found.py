"""What random comparison with upstream found stays found: each expression has upstream's verdict and cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.selectors import CompileError, compile  # noqa: A004 - the seam's name
from extender.selectors.conformance import run_cases

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DOCUMENT: dict[str, Any] = yaml.load(
    (Path(__file__).parent / "data" / "found.yaml").read_text("utf-8"), Loader=_LOADER
)


@pytest.mark.parametrize("case", _DOCUMENT["cases"], ids=lambda case: case["expression"][:60])
def test_the_verdict_and_cost_are_upstreams(case: dict[str, Any]) -> None:
    [record] = run_cases([{**case, "device": _DOCUMENT["device"]}], with_cost=True)
    assert (record.got, record.cost) == (case["expect"], case.get("cost", 0)), record.error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "google.protobuf.Int64Value{value: 2u} == 2",
            "expected type of field 'value' is 'int' but provided",
        ),
        ("google.protobuf.Int64Value{nope: 2} == 2", "undefined field 'nope'"),
        ("has(google.protobuf.Int64Value{}.value)", "type 'wrapper(int)' does not support field selection"),
        ("google.protobuf.Int64Value == int", "reference to undefined type: google.protobuf.Int64Value"),
        ("type(google.protobuf.Int64Value{})", "not type(wrapper(int))"),
    ],
)
def test_a_message_is_refused_in_upstreams_words(text: str, message: str) -> None:
    refused = compile(text)
    assert isinstance(refused, CompileError)
    assert message in refused.message
