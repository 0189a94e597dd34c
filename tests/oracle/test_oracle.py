"""The oracle answers the conformance data as recorded, and keeps its promises as a process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.oracle.client import OracleError

if TYPE_CHECKING:
    from tests.oracle.client import AllocateAnswer, Oracle, SelectorVerdict

pytestmark = pytest.mark.oracle

_TESTS = Path(__file__).resolve().parents[1]
_VARYING_COST = frozenset({"domain-iter", "attr-iter-cmp-absorb", "twovar-exists"})
"""Cases whose cost depends on the order in which Go iterates the device's maps."""


def _environment(case: dict[str, Any]) -> dict[str, Any]:
    if case.get("env") != "NewExpressions":
        return {"stored": True}
    gates = case["gates"]
    return {
        "stored": False,
        "consumableCapacity": gates["DRAConsumableCapacity"],
        "listTypeAttributes": gates["DRAListTypeAttributes"],
    }


def _differs(case: dict[str, Any], said: SelectorVerdict) -> bool:
    if said.verdict != case["expect"] or case.get("error_contains", "") not in said.error:
        return True
    counts = said.verdict != "compile error" and case["id"] not in _VARYING_COST
    return counts and case["cost"] is not None and said.cost != case["cost"]


def test_every_selector_case_is_answered_as_recorded(oracle: Oracle) -> None:
    cases = yaml.safe_load((_TESTS / "selectors/data/selectors.yaml").read_text())["cases"]
    answers = oracle.selectors(
        {
            "expression": case["expression"],
            "device": case["device"],
            "environment": _environment(case),
        }
        for case in cases
    )
    assert len(cases) == 248
    assert [case["id"] for case, said in zip(cases, answers, strict=True) if _differs(case, said)] == []


def _as_recorded(expected: dict[str, Any], said: AllocateAnswer) -> bool:
    asserted = expected.get("errorContains")
    error = said.error or ""
    text = all(part in error for part in asserted) if asserted else error == (expected["error"] or "")
    return (
        text
        and said.outcome == expected["outcome"]
        and said.error_scope == expected.get("errorScope", "")
        and said.results == expected["results"]
    )


def test_every_allocator_case_is_answered_as_recorded(oracle: Oracle) -> None:
    cases = [
        case
        for name in ("allocator.json", "allocator-extra.json")
        for case in json.loads((_TESTS / "allocator/data" / name).read_text())
    ]
    fields = ("features", "allocatedState", "node", "claimsInNamespaceOrder", "classes", "slices")
    answers = oracle.allocations(
        {field: case[field] for field in fields} | {"context": case.get("context", "")} for case in cases
    )
    assert len(cases) == 241
    wrong = [
        case["name"]
        for case, said in zip(cases, answers, strict=True)
        if not _as_recorded(case["expected"], said)
    ]
    assert wrong == []


def test_answers_come_in_the_order_of_the_questions(oracle: Oracle) -> None:
    pairs = [(str(number), str(number + 1)) for number in range(5_000)]
    answers = oracle.quantities(pairs)
    assert [answer.a.value for answer in answers] == list(range(5_000))
    assert {answer.compare for answer in answers} == {-1}


def test_a_question_that_makes_no_sense_is_a_fault_and_no_verdict(oracle: Oracle) -> None:
    with pytest.raises(OracleError, match="needs device"):
        oracle.selectors([{"expression": "true"}])
    assert oracle.modules()["k8s.io/dynamic-resource-allocation"] == "v0.37.2"


def test_one_allocator_serves_many_nodes_in_a_bench(oracle: Oracle) -> None:
    case = json.loads((_TESTS / "allocator/data/allocator.json").read_text())[0]
    answer = oracle.bench_allocate(case, [{"name": "node-1"}, {"name": "node-2"}], 2)
    assert answer.nodes == 2
    assert len(answer.rounds) == 2
    assert sum(answer.outcomes.values()) == 2


def test_node_selectors_and_tolerations_are_answered(oracle: Oracle) -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}
    assert oracle.node_selector(selector, {"name": "n", "labels": {"gpu": "yes"}}).match
    assert not oracle.node_selector(selector, {"name": "n", "labels": {}}).match
    assert oracle.tolerates({"operator": "Exists"}, {"key": "heat", "effect": "NoSchedule"})
    assert not oracle.tolerates(
        {"key": "other", "operator": "Exists"}, {"key": "heat", "effect": "NoExecute"}
    )
