"""Every conformance case, through the allocator and the selector engine that the product uses."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.allocator.columns import SelectorColumns
from extender.allocator.conformance import normalised, run_case
from extender.selectors import Environment

_DATA = Path(__file__).parent / "data"
_CASES = [
    case
    for name in ("allocator.json", "allocator-extra.json")
    for case in json.loads((_DATA / name).read_text())
]
_IDS = [case["name"] for case in _CASES]
_ENGINE = SelectorColumns(Environment())


@pytest.mark.parametrize("case", _CASES, ids=_IDS)
def test_a_case_ends_as_upstreams_allocator_ends_it(case: dict[str, Any]) -> None:
    record = run_case(case, _ENGINE)
    assert record.ok, record.why


@pytest.mark.parametrize("case", _CASES, ids=_IDS)
def test_a_case_takes_as_many_steps_as_upstream(case: dict[str, Any]) -> None:
    upstream = case["variants"][case["expected"]["variant"]]["allocateOne"]
    assert run_case(case, _ENGINE).found.steps == upstream


def test_no_case_is_left_out() -> None:
    assert len(_CASES) == 201 + 40


def _case(name: str) -> dict[str, Any]:
    return copy.deepcopy(next(case for case in _CASES if case["name"] == name))


def test_another_device_is_a_failure_that_shows_both() -> None:
    case = _case("small-and-large")
    case["expected"]["results"][0]["devices"]["results"][0]["device"] = "device-9"
    record = run_case(case, _ENGINE)
    assert not record.ok
    assert "device-1" in record.why
    assert "device-9" in record.why


def test_another_outcome_is_a_failure() -> None:
    case = _case("small-and-large")
    case["expected"] |= {"outcome": "no-fit", "results": None}
    assert run_case(case, _ENGINE).why.startswith("outcome allocated")


def test_another_scope_or_text_is_a_failure() -> None:
    case = _case("extra-all-mode-too-many")
    case["expected"]["errorScope"] = "node"
    assert run_case(case, _ENGINE).why == "error scope fatal, expected node"
    case["expected"] |= {"errorScope": "fatal", "error": "something else"}
    assert "something else" in run_case(case, _ENGINE).why


def test_another_number_of_steps_is_a_failure_where_it_is_asserted() -> None:
    case = _case("check-combinations-with-backtracking")
    case["expected"]["stats"]["numAllocateOneInvocations"] = 11
    assert run_case(case, _ENGINE).why == "12 visits of the search, expected 11"


def test_a_case_that_cannot_be_read_fails_and_says_why() -> None:
    record = run_case({"name": "broken", "features": {"warp": True}}, _ENGINE)
    assert (record.ok, record.found.outcome) == (False, "unreadable")
    assert "warp" in record.why


def test_quantities_compare_by_value_and_share_ids_by_presence() -> None:
    ours = {"shareID": "x", "consumedCapacity": {"memory": "1024Mi"}, "tolerations": []}
    theirs = {"shareID": "y", "consumedCapacity": {"memory": "1Gi"}}
    assert normalised(ours) == normalised(theirs)
    assert normalised(ours) != normalised({**theirs, "consumedCapacity": {"memory": "1G"}})
    assert normalised(ours) != normalised({"consumedCapacity": {"memory": "1Gi"}})


def test_a_record_is_json() -> None:
    record = run_case(_case("small-and-large"), _ENGINE)
    assert set(msgspec.json.decode(msgspec.json.encode(record.as_dict()))) == {
        "name",
        "ok",
        "why",
        "outcome",
        "scope",
        "error",
        "results",
        "steps",
    }
