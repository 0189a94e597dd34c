"""Every case of the real evaluator's answers, with its cost, through the command's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from rich.console import Console

from extender.cli.conformance import conformance_selectors
from extender.selectors.conformance import CaseError, Record, run_cases

DATA = Path(__file__).parent / "data" / "selectors.yaml"


def load() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(DATA.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return run_cases(load(), with_cost=True)


def test_every_case_has_the_verdict_the_error_and_the_cost_of_the_real_evaluator(
    records: list[Record],
) -> None:
    assert [(record.id, record.version, record.why) for record in records if not record.ok] == []
    assert len({record.id for record in records}) == 248


def test_every_function_and_error_path_has_upstreams_verdict_and_cost() -> None:
    path = DATA.with_name("expressions.yaml")
    document = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    records = run_cases(document, with_cost=True)
    assert [(record.id, record.why, record.error) for record in records if not record.ok] == []
    assert len(records) > 500


def test_only_loops_that_stop_early_need_another_order_of_a_map(records: list[Record]) -> None:
    assert {record.id for record in records if record.cost_order == "other"} <= {
        "attr-iter-cmp-absorb",
        "twovar-exists",
    }


def case(**fields: Any) -> dict[str, Any]:
    return {"id": "one", "expression": "device.driver == 'a'", "device": {"driver": "a"}, **fields}


def test_the_command_prints_failures_and_ends_with_the_counts(tmp_path: Path) -> None:
    good = case(expect="true", cost=3)
    bad = case(id="two", expect="false", error_contains="nothing")
    path, out = tmp_path / "cases.yaml", tmp_path / "out.json"
    path.write_text(yaml.safe_dump({"cases": [good, bad]}))
    console = Console(record=True, width=200)
    assert conformance_selectors(path, console, cost=True, json_out=out) == 1
    printed = console.export_text()
    assert "FAILED two (1.37): verdict true, expected false" in printed
    assert printed.endswith("1 passed, 1 failed\n")
    first, second = msgspec.json.decode(out.read_bytes())
    assert (first["got"], first["cost"], first["ok"]) == ("true", 3, True)
    assert (second["got"], second["ok"]) == ("true", False)


def test_a_wrong_cost_fails_only_when_costs_are_compared() -> None:
    document = {"cases": [case(expect="true", cost=4)]}
    assert run_cases(document, with_cost=False)[0].ok
    assert run_cases(document, with_cost=True)[0].why == "cost 3, expected 4"


def test_verdicts_of_other_releases_are_checked_too() -> None:
    document = {
        "cases": [case(expression="dyn(true)", expect="true", other_versions={"1.35": "runtime error"})]
    }
    assert [record.ok for record in run_cases(document, with_cost=False)] == [True, False]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (3, "cases: expected a list"),
        ({"cases": [3]}, "expected a mapping"),
        ({"cases": [case(expect="maybe")]}, "one: expect"),
        ({"cases": [case(expect="true", expression=3)]}, "one: expression"),
        ({"cases": [case(expect="true", cost="3")]}, "one: cost"),
        ({"cases": [case(expect="true", other_versions={"1.36": "maybe"})]}, "one: other_versions"),
        ({"cases": [case(expect="true", device={"attributes": {"x": {"odd": 1}}})]}, "one: x"),
        ({"cases": [case(expect="true", device={"attributes": {"x": {"int": "a"}}})]}, "one: x.int"),
        ({"cases": [case(expect="true", device={"attributes": {"x": {"bool": "no"}}})]}, "one: x.bool"),
        ({"cases": [case(expect="true", device={"attributes": {"x": {"ints": 3}}})]}, "one: x.ints"),
        ({"cases": [case(expect="true", device={"attributes": {"x": {"ints": ["a"]}}})]}, "one: x.ints"),
        ({"cases": [case(expect="true", device={"capacity": {"x": [1]}})]}, "one: x"),
    ],
)
def test_what_is_no_case_is_named(document: object, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        run_cases(document, with_cost=False)


def test_an_unreadable_file_is_told_from_failed_cases(tmp_path: Path) -> None:
    console = Console(record=True)
    assert conformance_selectors(tmp_path / "none.yaml", console) == 2
    (tmp_path / "bad.yaml").write_text("cases: [")
    assert conformance_selectors(tmp_path / "bad.yaml", console) == 2
