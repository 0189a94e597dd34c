"""Compatibility groups by the unit facts of data/allocator-units.json, and the account of a pool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocator.counters import CounterLedger, GroupIntersection
from extender.allocator.features import Features
from extender.allocator.pools import gather_pools
from extender.allocator.state import AllocatedState
from extender.api.resource import Counter, CounterSet, DeviceCounterConsumption
from extender.model.device import DeviceID
from tests.allocator.builders import DRIVER, NODE, device, slice_of

_UNITS = json.loads((Path(__file__).parent / "data" / "allocator-units.json").read_text())
_GROUPS = [unit for unit in _UNITS if unit["function"] == "compatibilityGroupsAdmit"]


@pytest.mark.parametrize("unit", _GROUPS, ids=[unit["name"] for unit in _GROUPS])
def test_groups_admit_as_upstream_says(unit: dict[str, dict[str, list[list[str]]]]) -> None:
    intersection = GroupIntersection()
    for member in unit["input"]["members"]:
        intersection = intersection.add(frozenset(member))
    candidate = frozenset(str(name) for name in unit["input"]["candidate"])
    assert intersection.admits(candidate) is bool(unit["expected"]["admits"])


def test_nobody_joins_members_that_have_nothing_in_common() -> None:
    torn = GroupIntersection().add(frozenset({"a"})).add(frozenset({"b"}))
    assert not torn.admits(frozenset())
    assert not torn.admits(frozenset({"a"}))


_AMOUNTS = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@given(amounts=_AMOUNTS, limit=st.integers(0, 6), held=st.integers(0, 63))
def test_reservations_stay_within_what_is_left_and_undoing_restores_it(
    amounts: list[int], limit: int, held: int
) -> None:
    users = [
        device(
            f"gpu-{i}", consumes_counters=[DeviceCounterConsumption("set", {"slots": Counter(str(amount))})]
        )
        for i, amount in enumerate(amounts)
    ]
    counters = [CounterSet("set", {"slots": Counter(str(limit))})]
    slices = [slice_of(users, count=2), slice_of([], name="counters", count=2, shared_counters=counters)]
    pools = gather_pools(NODE, slices, Features(partitionable_devices=True))
    holders = {DeviceID(DRIVER, "pool-1", f"gpu-{i}") for i in range(len(amounts)) if held >> i & 1}
    ledger = CounterLedger(pools.by_id, AllocatedState.over(holders), with_groups=False)
    left = limit - sum(amount for i, amount in enumerate(amounts) if held >> i & 1)
    taken = 0
    reservations = []
    for candidate, amount in zip(pools.candidates, amounts, strict=True):
        reservation = ledger.reserve(candidate)
        assert (reservation is not None) == (taken + amount <= left)
        if reservation is not None:
            reservations.append(reservation)
            taken += amount
    for reservation in reversed(reservations):
        reservation.undo()
    again = [ledger.reserve(candidate) is not None for candidate in pools.candidates]
    assert again.count(True) == len(reservations)


def test_a_device_that_gives_counters_back_may_join_a_pool_that_is_overdrawn() -> None:
    users = [
        device(name, consumes_counters=[DeviceCounterConsumption("set", {"slots": Counter(amount)})])
        for name, amount in (("held", "3"), ("giver", "-1"), ("taker", "1"))
    ]
    counters = [CounterSet("set", {"slots": Counter("2")})]
    slices = [slice_of(users, count=2), slice_of([], name="counters", count=2, shared_counters=counters)]
    pools = gather_pools(NODE, slices, Features(partitionable_devices=True))
    in_use = AllocatedState.over({DeviceID(DRIVER, "pool-1", "held")})
    ledger = CounterLedger(pools.by_id, in_use, with_groups=False)
    _, giver, taker = pools.candidates
    assert ledger.reserve(taker) is None
    assert ledger.reserve(giver) is not None
    assert ledger.reserve(taker) is None
