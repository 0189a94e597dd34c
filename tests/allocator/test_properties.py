"""Laws of the allocator, against a slow one that shares no code with it."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocator import AllocatedState, Allocation, GaveUp, NoFit, allocate, gather_pools
from extender.allocator.outcome import device_of
from extender.api.resource import AllocationResult
from tests.allocator.builders import ALL_DEFAULTS, CLASSES, NODE, attempt
from tests.allocator.worlds import World, evaluator, first_fit, worlds

_STEPS = 100_000


def _run(world: World, steps: int = _STEPS) -> Allocation | NoFit | GaveUp:
    outcome = attempt(world.claims, world.slices, in_use=world.in_use, evaluator=evaluator(), steps=steps)
    assert isinstance(outcome, Allocation | NoFit | GaveUp), outcome
    return outcome


def _found(outcome: Allocation) -> list[list[tuple[str, object]]]:
    return [
        [(result.request, device_of(result)) for result in found.devices.results or ()]
        for found in outcome.results
    ]


@settings(max_examples=500)
@given(world=worlds())
def test_the_first_choice_that_obeys_all_rules_is_found_and_none_where_there_is_none(world: World) -> None:
    outcome = _run(world)
    expected = first_fit(world)
    if expected is None:
        assert isinstance(outcome, NoFit)
    else:
        assert isinstance(outcome, Allocation)
        assert _found(outcome) == expected


@settings(max_examples=150)
@given(world=worlds(), steps=st.integers(0, 60))
def test_a_bound_makes_the_search_give_up_or_changes_nothing(world: World, steps: int) -> None:
    bounded, whole = _run(world, steps), _run(world)
    if whole.steps > steps:
        assert bounded == GaveUp(steps)
    else:
        assert bounded == whole


@settings(max_examples=150)
@given(world=worlds())
def test_no_argument_is_changed(world: World) -> None:
    pools = gather_pools(NODE, world.slices, ALL_DEFAULTS)
    in_use = world.in_use
    before = msgspec.json.encode((world.slices, world.claims, CLASSES)), in_use.base, repr(in_use)
    allocate(NODE, world.claims, CLASSES, pools, in_use, ALL_DEFAULTS, _STEPS, evaluator=evaluator())
    assert (msgspec.json.encode((world.slices, world.claims, CLASSES)), in_use.base, repr(in_use)) == before


@settings(max_examples=150)
@given(world=worlds())
def test_pools_can_be_asked_again_and_again(world: World) -> None:
    pools = gather_pools(NODE, world.slices, ALL_DEFAULTS)
    engine = evaluator()
    outcomes = [
        allocate(NODE, world.claims, CLASSES, pools, in_use, ALL_DEFAULTS, _STEPS, evaluator=engine)
        for in_use in (world.in_use, AllocatedState(), world.in_use)
    ]
    assert outcomes[0] == outcomes[2] == _run(world)


@settings(max_examples=150)
@given(world=worlds())
def test_claims_stacked_one_by_one_get_what_they_get_together(world: World) -> None:
    state = world.in_use
    stacked: list[AllocationResult] = []
    for one in world.claims:
        outcome = attempt([one], world.slices, in_use=state, evaluator=evaluator())
        if not isinstance(outcome, Allocation):
            return  # together the first claim may step aside for the second
        stacked.extend(outcome.results)
        state += outcome
    together = _run(world)
    assert isinstance(together, Allocation)
    assert list(together.results) == stacked
