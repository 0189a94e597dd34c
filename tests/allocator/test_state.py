from __future__ import annotations

from extender.allocator import AllocatedState, Allocation, NoFit, SharedDeviceID
from extender.allocator.state import Holdings, merged
from extender.api.quantity import Quantity
from extender.api.resource import Device
from extender.model.device import DeviceID
from tests.allocator.builders import DRIVER, attempt, capacity, claim, device, names, request, slice_of

_GPU = DeviceID(DRIVER, "pool-1", "gpu")


def _shared(value: str = "8") -> list[Device]:
    return [device("gpu", capacity={"memory": capacity(value)}, allow_multiple_allocations=True)]


def _allocation(**amounts: str) -> Allocation:
    outcome = attempt([claim(request(amounts=amounts))], [slice_of(_shared())])
    assert isinstance(outcome, Allocation)
    return outcome


def test_a_dedicated_device_is_held_and_not_shared() -> None:
    outcome = attempt([claim(request())], [slice_of([device("gpu")])])
    assert isinstance(outcome, Allocation)
    state = AllocatedState() + outcome
    assert (state.holds(_GPU), state.shares(_GPU), state.allocated(_GPU)) == (True, False, True)


def test_shares_add_up() -> None:
    state = AllocatedState() + _allocation(memory="2") + _allocation(memory="3")
    assert (state.holds(_GPU), state.shares(_GPU)) == (False, True)
    assert state.consumed(_GPU) == {"memory": Quantity.parse("5")}


def test_stacking_starts_from_what_the_base_says() -> None:
    base = AllocatedState.over(capacity={_GPU: {"memory": Quantity.parse("4")}})
    state = base + _allocation(memory="2")
    assert state.consumed(_GPU) == {"memory": Quantity.parse("6")}
    assert base.consumed(_GPU) == {"memory": Quantity.parse("4")}


def test_what_is_stacked_counts_for_the_next_attempt() -> None:
    slices = [slice_of(_shared())]
    wanted = [claim(request(amounts={"memory": "3"}))]
    state = AllocatedState()
    for _ in range(2):
        outcome = attempt(wanted, slices, in_use=state)
        assert isinstance(outcome, Allocation)
        assert names(outcome) == [["gpu"]]
        state += outcome
    assert isinstance(attempt(wanted, slices, in_use=state), NoFit)


def test_a_share_without_capacity_still_shares_the_device() -> None:
    state = AllocatedState.over(shared=[SharedDeviceID(*_GPU, "share")])
    assert state.shares(_GPU)
    assert state.consumed(_GPU) is None


def test_the_base_is_kept_by_reference() -> None:
    base = Holdings({_GPU})
    state = AllocatedState(base) + _allocation(memory="1")
    assert state.base.devices is base.devices


def test_the_state_of_written_allocations_is_that_of_stacking_them() -> None:
    first, second = _allocation(memory="1"), _allocation(memory="2")
    gathered = AllocatedState.of([*first.results, *second.results])
    assert gathered.consumed(_GPU) == (AllocatedState() + first + second).consumed(_GPU)


def test_merging_keeps_the_names_of_both() -> None:
    one, two = Quantity.parse("1"), Quantity.parse("2")
    assert merged({"a": one}, {"a": two, "b": two}) == {"a": Quantity.parse("3"), "b": two}
