"""Devices as the search sees them, in the order in which it tries them.

Owns what is computed once for a device of a node's pools: its id, facts, taints, parsed counters and
capacities. Never: whether a device is free, which changes with every claim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from extender.api.quantity import Quantity
from extender.api.resource import Device, DeviceCapacity, DeviceTaint, ResourceSlice
from extender.model.device import DeviceFacts, DeviceID

from .nodeselector import Locality, Place
from .quantities import nano_of, quantity_of
from .taints import blocking_taints


class PoolID(NamedTuple):
    """A pool: pool names are unique within a driver only."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class CounterUse(NamedTuple):
    """What a device takes from one counter set; amounts in units of 1e-9."""

    counter_set: str
    counters: tuple[tuple[str, int], ...]
    groups: frozenset[str]


class Capacity(NamedTuple):
    """A capacity with its request policy, parsed."""

    value: Quantity
    has_policy: bool = False
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] | None = None
    has_range: bool = False
    low: Quantity | None = None
    high: Quantity | None = None
    step: Quantity | None = None

    @classmethod
    def of(cls, wire: DeviceCapacity) -> Capacity:
        """Parse a capacity; raise Abort for a text that is no quantity."""
        policy = wire.request_policy
        if policy is None:
            return cls(quantity_of(wire.value))
        allowed = policy.valid_range
        return cls(
            value=quantity_of(wire.value),
            has_policy=True,
            default=None if policy.default is None else quantity_of(policy.default),
            valid_values=None
            if policy.valid_values is None
            else tuple(quantity_of(value) for value in policy.valid_values),
            has_range=allowed is not None,
            low=None if allowed is None or allowed.min is None else quantity_of(allowed.min),
            high=None if allowed is None or allowed.max is None else quantity_of(allowed.max),
            step=None if allowed is None or allowed.step is None else quantity_of(allowed.step),
        )


@dataclass(slots=True, eq=False)
class Candidate:
    """A device of a usable pool. `capacities` is parsed when first asked for."""

    id: DeviceID
    pool: PoolID
    device: Device
    slice: ResourceSlice
    facts: DeviceFacts
    allow_multiple: bool
    has_binding_conditions: bool
    taints: tuple[DeviceTaint, ...]
    uses: tuple[CounterUse, ...]
    _capacities: dict[str, Capacity] | None = field(default=None, init=False)

    @property
    def capacities(self) -> dict[str, Capacity]:
        """The device's capacities by name, sorted; raises Abort for a text that is no quantity."""
        if self._capacities is None:
            published = self.device.capacity or {}
            self._capacities = {name: Capacity.of(published[name]) for name in sorted(published)}
        return self._capacities

    @property
    def locality(self) -> Locality:
        """What the device says about the nodes where it can be used."""
        where = self.device if self.slice.spec.per_device_node_selection else self.slice.spec
        return Locality(where.node_name, where.node_selector, bool(self.device.binds_to_node))


def candidate_of(device: Device, slice_: ResourceSlice) -> Candidate:
    """Prepare a device; raise Abort for a counter that is no quantity."""
    spec = slice_.spec
    allow_multiple = bool(device.allow_multiple_allocations)
    return Candidate(
        id=DeviceID(spec.driver, spec.pool.name, device.name),
        pool=PoolID(spec.driver, spec.pool.name),
        device=device,
        slice=slice_,
        facts=DeviceFacts(spec.driver, device.attributes or {}, device.capacity or {}, allow_multiple),
        allow_multiple=allow_multiple,
        has_binding_conditions=bool(device.binding_conditions),
        taints=blocking_taints(device) if device.taints else (),
        uses=counter_uses(device) if device.consumes_counters else (),
    )


def counter_uses(device: Device) -> tuple[CounterUse, ...]:
    """Parse what a device consumes from counter sets."""
    return tuple(
        CounterUse(
            use.counter_set,
            tuple((name, nano_of(counter.value)) for name, counter in (use.counters or {}).items()),
            frozenset(use.compatibility_groups or ()),
        )
        for use in device.consumes_counters or ()
    )


def device_place(device: Device) -> Place:
    """Where a device of a slice with perDeviceNodeSelection is available."""
    return Place(device.node_name or "", bool(device.all_nodes), device.node_selector)


def slice_place(slice_: ResourceSlice) -> Place:
    """Where the devices of a slice are available; all empty when the slice does not say."""
    spec = slice_.spec
    return Place(spec.node_name or "", bool(spec.all_nodes), spec.node_selector)
