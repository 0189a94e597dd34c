"""Our engines answer as upstream's do, on made-up inputs and on every input that once showed a difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings

from extender.allocator.columns import SelectorColumns
from extender.allocator.evaluator import SelectorFault
from extender.selectors import Environment
from tests.oracle.campaign import Campaign
from tests.oracle.strategies.draw import inputs
from tests.oracle.strategies.expressions import SelectorInput, selector
from tests.oracle.strategies.quantities import quantity_pair
from tests.oracle.strategies.worlds import world
from tests.oracle.subjects.allocator import AllocatorSubject
from tests.oracle.subjects.quantity import QuantitySubject
from tests.oracle.subjects.selectors import SelectorSubject

if TYPE_CHECKING:
    from extender.api.resource import DeviceAttribute
    from extender.model.device import DeviceFacts
    from tests.oracle.client import Case, Oracle
    from tests.oracle.subjects.subject import Subject

pytestmark = pytest.mark.oracle

_CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
_SEED = 20261130
_BY_HYPOTHESIS = settings(
    max_examples=60,
    database=None,
    suppress_health_check=list(HealthCheck),  # the generators reject much, and the oracle is slow
    derandomize=True,
)


def _allocator() -> AllocatorSubject:
    return AllocatorSubject(SelectorColumns(Environment()))


@pytest.mark.parametrize(
    ("subject", "count"),
    [(SelectorSubject(), 1_500), (_allocator(), 800), (QuantitySubject(), 3_000)],
    ids=["selectors", "allocator", "quantity"],
)
def test_a_slice_of_the_fuzz_finds_no_difference(
    oracle: Oracle, subject: Subject[Any, Any, Any], count: int
) -> None:
    tally = Campaign(subject, oracle).run(count, _SEED)
    assert tally.ran == count
    assert not tally.failed, "\n".join(str(finding) for finding in tally.findings)


@pytest.mark.parametrize("path", _CASES, ids=lambda path: path.stem)
def test_a_difference_once_found_stays_gone(oracle: Oracle, path: Path) -> None:
    case = json.loads(path.read_text())
    if "expression" in case:
        difference = Campaign(SelectorSubject(), oracle).difference_of(SelectorInput.of(case))
    elif "slices" in case:
        difference = Campaign(_allocator(), oracle).difference_of(case)
    else:
        difference = Campaign(QuantitySubject(), oracle).difference_of((case["a"], case["b"]))
    assert difference is None, str(difference)


def test_hypothesis_finds_no_expression_with_another_verdict(oracle: Oracle) -> None:
    campaign = Campaign(SelectorSubject(), oracle)

    @_BY_HYPOTHESIS
    @given(inputs(selector))
    def agrees(made: SelectorInput) -> None:
        assert campaign.difference_of(made) is None, made.text

    agrees()


def test_hypothesis_finds_no_world_with_another_allocation(oracle: Oracle) -> None:
    campaign = Campaign(_allocator(), oracle)

    @_BY_HYPOTHESIS
    @given(inputs(world))
    def agrees(made: Case) -> None:
        assert campaign.difference_of(made) is None

    agrees()


def test_hypothesis_finds_no_quantity_with_another_value(oracle: Oracle) -> None:
    campaign = Campaign(QuantitySubject(), oracle)

    @_BY_HYPOTHESIS
    @given(inputs(quantity_pair))
    def agrees(made: tuple[str, str]) -> None:
        assert campaign.difference_of(made) is None

    agrees()


def test_the_worlds_end_in_every_way_often(oracle: Oracle) -> None:
    outcomes = Campaign(_allocator(), oracle).run(600, _SEED).outcomes
    assert outcomes["allocated"] > 100
    assert outcomes["no-fit"] > 100
    assert outcomes["error (fatal)"] > 60
    assert outcomes["error (node)"] > 5


def test_the_expressions_end_in_every_way_often(oracle: Oracle) -> None:
    outcomes = Campaign(SelectorSubject(), oracle).run(600, _SEED).outcomes
    for verdict in ("true", "false", "compile error", "runtime error"):
        assert outcomes[verdict] > 60, verdict


class _Liar:
    """A selector engine that turns one verdict in every world round."""

    def __init__(self) -> None:
        self._honest = SelectorColumns(Environment())

    def matches(self, expression: str, facts: DeviceFacts) -> bool | SelectorFault:
        verdict = self._honest.matches(expression, facts)
        return not verdict if verdict is True and expression == "true" else verdict

    def derive(self, expression: str, facts: DeviceFacts) -> DeviceAttribute | SelectorFault:
        return self._honest.derive(expression, facts)


def test_a_wrong_engine_is_found_and_its_input_made_small(oracle: Oracle) -> None:
    tally = Campaign(AllocatorSubject(_Liar()), oracle, keep=1).run(400, _SEED)
    assert tally.failed > 3
    [finding] = tally.findings
    assert len(json.dumps(finding.case)) < 2_500, finding
