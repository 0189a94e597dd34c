"""Small worlds for property tests, and a slow allocator that shares no code with the real one.

The slow one goes through every complete choice in the order of the search and takes the first that obeys the
rules; a rule is checked on the whole choice, never step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from hypothesis import strategies as st

from extender.allocator import AllocatedState, SharedDeviceID
from extender.api.quantity import Quantity
from extender.api.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from extender.model.device import DeviceFacts, DeviceID
from tests.allocator.builders import (
    DRIVER,
    Table,
    alternatives,
    capacity,
    claim,
    device,
    request,
    slice_of,
    sub,
)

MEANINGS = {
    "numa is 0": lambda facts: _numa(facts) == 0,
    "has numa": lambda facts: _numa(facts) is not None,
}


def _numa(facts: DeviceFacts) -> int | None:
    found = facts.attributes.get("numa")
    return None if found is None else found.int


@dataclass(frozen=True)
class World:
    """Two pools on one node, what is in use of them, and claims."""

    slices: list[ResourceSlice]
    claims: list[ResourceClaim]
    held: frozenset[DeviceID]
    shared: dict[DeviceID, int]
    """Memory that shares consume, by device."""

    @property
    def in_use(self) -> AllocatedState:
        return AllocatedState.over(
            self.held,
            [SharedDeviceID(*found, "share") for found in self.shared],
            {found: {"memory": Quantity(amount)} for found, amount in self.shared.items()},
        )

    @property
    def devices(self) -> list[tuple[DeviceID, Device]]:
        return [
            (DeviceID(DRIVER, item.spec.pool.name, found.name), found)
            for item in self.slices
            for found in item.spec.devices or ()
        ]


def evaluator() -> Table:
    return Table(MEANINGS)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    slices: list[ResourceSlice] = []
    held: set[DeviceID] = set()
    shared: dict[DeviceID, int] = {}
    for pool, most in (("pool-1", 5), ("pool-2", 1)):
        slots = draw(st.integers(1, 3))
        devices = [_device(draw, f"{pool}-gpu-{i}") for i in range(draw(st.integers(most - 1, most)))]
        lanes = draw(st.integers(1, 2))
        counters = [CounterSet("set", {"slots": Counter(str(slots)), "lanes": Counter(str(lanes))})]
        slices += [
            slice_of(devices, name=f"{pool}-a", pool=pool, count=2),
            slice_of([], name=f"{pool}-b", pool=pool, count=2, shared_counters=counters),
        ]
        for found in devices:
            identity = DeviceID(DRIVER, pool, found.name)
            if draw(st.integers(0, 7)) == 0:
                if found.allow_multiple_allocations:
                    shared[identity] = draw(st.integers(0, 3))
                else:
                    held.add(identity)
    shape = draw(st.sampled_from([(1,), (1,), (2,), (1, 1), (1, 2)]))
    claims = [_claim(draw, f"claim-{i}", count) for i, count in enumerate(shape)]
    return World(slices, claims, frozenset(held), shared)


def _device(draw: st.DrawFn, name: str) -> Device:
    fields: dict[str, Any] = {}
    kind = draw(st.sampled_from(["plain", "counters", "counters", "shared", "shared with counters"]))
    if "counters" in kind:
        counter = draw(st.sampled_from(["slots", "slots", "lanes"]))
        taken = {counter: Counter(draw(st.sampled_from(["1", "1", "2"])))}
        fields["consumes_counters"] = [DeviceCounterConsumption("set", taken)]
    if "shared" in kind:
        fields["capacity"] = {"memory": capacity(draw(st.sampled_from(["1", "2", "4"])))}
        fields["allow_multiple_allocations"] = True
    elif draw(st.booleans()):
        fields["capacity"] = {"memory": capacity("2")}
    if draw(st.integers(0, 3)) == 0:
        fields["taints"] = [DeviceTaint("heat", "", draw(st.sampled_from(["NoSchedule", "None"])))]
    numa = draw(st.sampled_from([None, 0, 0, 0, 1, 1]))
    rack = draw(st.sampled_from([None, "x", "x", "y", "y", "z"]))
    attributes = {key: value for key, value in (("numa", numa), ("rack", rack)) if value is not None}
    return device(name, attributes or None, **fields)


def _claim(draw: st.DrawFn, name: str, many: int) -> ResourceClaim:
    requests = [_request(draw, f"req-{i}") for i in range(many)]
    names = [item.name for item in requests]
    constraints = []
    for kind, attribute in draw(
        st.sampled_from(
            [
                [],
                [("match_attribute", "numa")],
                [("match_attribute", "rack")],
                [("distinct_attribute", "rack")],
                [("match_attribute", "numa"), ("distinct_attribute", "rack")],
                [("distinct_attribute", "rack"), ("match_attribute", "numa")],
            ]
        )
    ):
        affected = draw(st.sampled_from([None, None, *([one] for one in names)]))
        constraints.append(DeviceConstraint(affected, **{kind: f"{DRIVER}/{attribute}"}))
    return claim(*requests, constraints=constraints, name=name)


def _request(draw: st.DrawFn, name: str) -> DeviceRequest:
    expressions = draw(st.sampled_from([(), (), ("numa is 0",), ("has numa",)]))
    if draw(st.integers(0, 3)) == 0:
        return alternatives(
            name, sub("large", draw(st.integers(1, 3)), *expressions), sub("small", draw(st.integers(1, 2)))
        )
    return request(
        name,
        draw(st.integers(1, 3)),
        *expressions,
        amounts=draw(st.sampled_from([None, None, {"memory": "1"}, {"memory": "2"}])),
        tolerations=draw(st.sampled_from([None, [DeviceToleration("heat", "Exists")]])),
    )


# -- the slow allocator -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """One device for one request."""

    claim: int
    request: str
    parent: str
    identity: DeviceID
    device: Device
    memory: Fraction | None
    """What a share consumes, None for a dedicated device."""


def first_fit(world: World) -> list[list[tuple[str, DeviceID]]] | None:
    """The first valid choice as (request, device) by claim, None when there is none."""
    for choice in _choices(world):
        if violation(world, choice) is None:
            return [
                [(one.request, one.identity) for one in choice if one.claim == index]
                for index in range(len(world.claims))
            ]
    return None


def _choices(world: World) -> Iterator[list[Choice]]:
    options = [
        list(_options(world, index, wanted))
        for index, item in enumerate(world.claims)
        for wanted in item.spec.devices.requests or ()
    ]
    for combined in product(*options):
        yield [one for option in combined for one in option]


def _options(world: World, index: int, wanted: DeviceRequest) -> Iterator[tuple[Choice, ...]]:
    forms: Sequence[tuple[str, str, Any]] = (
        [(wanted.name, "", wanted.exactly)]
        if wanted.exactly is not None
        else [(f"{wanted.name}/{item.name}", wanted.name, item) for item in wanted.first_available or ()]
    )
    for name, parent, form in forms:
        usable = [
            Choice(index, name, parent, identity, found, _consumes(found, form))
            for identity, found in world.devices
            if _acceptable(found, form)
        ]
        yield from combinations(usable, form.count)


def _acceptable(found: Device, form: Any) -> bool:
    facts = DeviceFacts(DRIVER, found.attributes or {}, found.capacity or {})
    if not all(MEANINGS[selector.cel.expression](facts) for selector in form.selectors or ()):
        return False
    blocked = any(taint.effect == "NoSchedule" for taint in found.taints or ())
    if blocked and not form.tolerations:
        return False
    asked = (form.capacity.requests or {}) if form.capacity else {}
    held = found.capacity or {}
    return all(
        name in held and _number(amount) <= _number(held[name].value) for name, amount in asked.items()
    )


def _consumes(found: Device, form: Any) -> Fraction | None:
    if not found.allow_multiple_allocations:
        return None
    asked = (form.capacity.requests or {}) if form.capacity else {}
    return _number(asked.get("memory", (found.capacity or {})["memory"].value))


def _number(value: object) -> Fraction:
    return Fraction(str(value))


def violation(world: World, choice: Sequence[Choice]) -> str | None:
    """The first rule that a complete choice breaks."""
    dedicated = [one.identity for one in choice if one.memory is None]
    if len(set(dedicated)) < len(dedicated) or world.held & set(dedicated):
        return "a device is dedicated twice"
    for identity, found in world.devices:
        taken = [one.memory for one in choice if one.identity == identity and one.memory is not None]
        if taken and sum(taken) + world.shared.get(identity, 0) > _number(
            (found.capacity or {})["memory"].value
        ):
            return f"{identity} is overcommitted"
    for index, item in enumerate(world.claims):
        for constraint in item.spec.devices.constraints or ():
            if not _obeyed(constraint, [one for one in choice if one.claim == index]):
                return f"claim {index}: {constraint}"
    return _counters(world, choice)


def _obeyed(constraint: DeviceConstraint, choice: Sequence[Choice]) -> bool:
    full = constraint.match_attribute or constraint.distinct_attribute or ""
    name = full.rpartition("/")[2]
    named = set(constraint.requests or ())
    affected = [one for one in choice if not named or {one.request, one.parent} & named]
    values = [(one.device.attributes or {}).get(name) for one in affected]
    if None in values:
        return False
    kinds = {str(value) for value in values}
    return len(kinds) <= 1 if constraint.match_attribute else len(kinds) == len(values)


def _counters(world: World, choice: Sequence[Choice]) -> str | None:
    in_use = world.held | set(world.shared)
    for item in world.slices:
        for counter_set in item.spec.shared_counters or ():
            pool = item.spec.pool.name
            used = {
                identity: _uses(found)
                for identity, found in world.devices
                if identity.pool == pool and found.consumes_counters
            }
            fresh = {one.identity for one in choice if one.identity in used} - set(world.shared)
            charged = [used[identity] for identity in {*fresh, *(in_use & set(used))}]
            for name, counter in (counter_set.counters or {}).items():
                if fresh and sum(uses.get(name, Fraction(0)) for uses in charged) > _number(counter.value):
                    return f"counter {name} of {pool} is overdrawn"
    return None


def _uses(found: Device) -> dict[str, Fraction]:
    return {
        name: _number(counter.value)
        for use in found.consumes_counters or ()
        for name, counter in (use.counters or {}).items()
    }
