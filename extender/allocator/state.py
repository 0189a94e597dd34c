"""What is already allocated: the allocator's view of all claims.

Owns the three facts that upstream's AllocatedState holds, and stacking an allocation on top of them.
Never mutates: `plus` answers a new state which shares the large sets with the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from extender.api.quantity import Quantity
from extender.api.resource import AllocationResult
from extender.model.device import DeviceID

from .outcome import Allocation, device_of
from .quantities import quantity_of

Consumption = Mapping[str, Quantity]
"""Consumed capacity by name."""


class SharedDeviceID(NamedTuple):
    """One share of a device which allows multiple allocations."""

    driver: str
    pool: str
    device: str
    share_id: str


class Holdings(NamedTuple):
    """Dedicated devices, devices that are shared, and what their shares consume together."""

    devices: AbstractSet[DeviceID] = frozenset()
    shared: AbstractSet[DeviceID] = frozenset()
    capacity: Mapping[DeviceID, Consumption] = MappingProxyType({})


_NOTHING: Final = Holdings()


@dataclass(frozen=True, slots=True)
class AllocatedState:
    """What claims hold: `base` from the ledger, kept by reference, and `more`, stacked on top by a planner.

    Results with admin access hold nothing. Nobody may change the sets of a state later.
    """

    base: Holdings = _NOTHING
    more: Holdings = _NOTHING

    @classmethod
    def over(
        cls,
        devices: AbstractSet[DeviceID] = frozenset(),
        shared: Iterable[SharedDeviceID] = (),
        capacity: Mapping[DeviceID, Consumption] = MappingProxyType({}),
    ) -> AllocatedState:
        """Read upstream's AllocatedState: dedicated devices, ids of shares, capacity summed over shares."""
        return cls(Holdings(devices, frozenset(DeviceID(*share[:3]) for share in shared), capacity))

    @classmethod
    def of(cls, allocations: Iterable[AllocationResult]) -> AllocatedState:
        """Gather the state of many claims' allocations (dynamicresources foreachAllocatedDevice)."""
        return cls().plus_results(allocations)

    def __add__(self, allocation: Allocation) -> AllocatedState:
        return self.plus(allocation)

    def plus(self, allocation: Allocation) -> AllocatedState:
        """Return the state after the allocation; its cost grows with what was stacked, not with the base."""
        return self.plus_results(allocation.results)

    def plus_results(self, allocations: Iterable[AllocationResult]) -> AllocatedState:
        """Return the state after several claims' allocations."""
        devices = set(self.more.devices)
        shared = set(self.more.shared)
        capacity = dict(self.more.capacity)
        for allocation in allocations:
            for result in allocation.devices.results or ():
                if result.admin_access:
                    continue
                device = device_of(result)
                if result.share_id is None:
                    devices.add(device)
                    continue
                shared.add(device)
                if result.consumed_capacity is not None:
                    before = capacity.get(device) or self.base.capacity.get(device) or {}
                    added = {name: quantity_of(text) for name, text in result.consumed_capacity.items()}
                    capacity[device] = merged(before, added)
        return AllocatedState(self.base, Holdings(devices, shared, capacity))

    def holds(self, device: DeviceID) -> bool:
        """Tell whether the device is dedicated to a claim."""
        return device in self.base.devices or device in self.more.devices

    def shares(self, device: DeviceID) -> bool:
        """Tell whether the device is shared by at least one claim."""
        return any(
            device in holdings.capacity or device in holdings.shared for holdings in (self.base, self.more)
        )

    def allocated(self, device: DeviceID) -> bool:
        """Tell whether the device is in use in either way."""
        return self.holds(device) or self.shares(device)

    def consumed(self, device: DeviceID) -> Consumption | None:
        """Return the capacity that all shares of the device consume, or None when nothing is recorded."""
        more = self.more.capacity.get(device)
        return self.base.capacity.get(device) if more is None else more


def merged(left: Consumption, right: Consumption) -> dict[str, Quantity]:
    """Add two consumptions name by name."""
    total = dict(left)
    for name, quantity in right.items():
        total[name] = total[name].add(quantity) if name in total else quantity
    return total
