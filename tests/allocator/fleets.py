"""Random fleets in a ledger, and the slow way to know what each node's first fit is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from extender.allocator import AllocatedState, Allocation, Failure, GaveUp, NoFit, allocate, gather_pools
from extender.allocator.columns import SelectorColumns
from extender.allocator.features import Features
from extender.allocator.outcome import device_of
from extender.allocator.prediction import Unpredicted
from extender.allocator.state import Holdings
from extender.api.core import Node, NodeSelector, NodeSelectorTerm, Pod
from extender.api.meta import Requirement
from extender.api.resource import (
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from extender.inventory.ledger import Ledger
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceID
from extender.selectors import Environment
from tests.inventory.objects import (
    claim,
    consuming,
    counters,
    device_class,
    fresh,
    node,
    pod,
    result,
    slice_of,
)

FEATURES = Features.default("1.37")
STEPS = 20_000
SELECTORS = SelectorColumns(Environment())
DOMAIN = "device.attributes['gpu.example.com']"
EXPRESSIONS = (
    f"{DOMAIN}.numa == 0",
    f"{DOMAIN}.?numa.orValue(1) == 1",
    f"{DOMAIN}.model == 'big'",
    "device.driver == 'gpu.example.com'",
    "device.capacity['gpu.example.com'].memory.compareTo(quantity('2Gi')) >= 0",
)
few = st.sampled_from
NODES = ("n0", "n1", "n2", "n3")


@dataclass(frozen=True)
class Fleet:
    """A ledger, and a pod with claims whose places are asked for."""

    ledger: Ledger
    pod: Pod
    claims: Sequence[ResourceClaim]
    assumed: Sequence[DeviceID]


@st.composite
def devices(draw: st.DrawFn, *, counted: bool) -> list[Device]:
    names = draw(st.lists(few("abcd"), min_size=2, max_size=4, unique=True))
    found = []
    for name in names:
        model = draw(few(("big", "small")))
        attributes = {"model": DeviceAttribute(string=model)}
        if draw(few((True, True, True, False))):
            attributes["numa"] = DeviceAttribute(int=draw(few((0, 1))))
        made = Device(
            name=name, attributes=attributes, capacity={"memory": DeviceCapacity(draw(few(("1Gi", "4Gi"))))}
        )
        match draw(few(("", "", "taint", "share", "count", "count", "bind"))):
            case "taint":
                made = replace(made, taints=[DeviceTaint("k", "v", draw(few(("NoSchedule", "None"))))])
            case "share":
                made = replace(made, allow_multiple_allocations=True)
            case "count":
                if counted:
                    made = replace(
                        made, consumes_counters=consuming("x", draw(few(("2", "3")))).consumes_counters
                    )
            case "bind":
                made = replace(made, binding_conditions=["ready"])
            case _:
                pass
        found.append(made)
    return found


@st.composite
def pools(draw: st.DrawFn) -> list[ResourceSlice]:
    """Slices of local pools of every node, and sometimes of wide ones."""
    slices: list[ResourceSlice] = []
    for name in NODES:
        for pool in draw(st.lists(few(("p", "q")), min_size=1, max_size=2, unique=True)):
            counted = draw(few((False, False, True)))
            extra = draw(few((0, 0, 0, 0, 1)))  # a slice that never comes
            count = 1 + counted + extra
            key = f"{name}-{pool}"
            if counted:
                slices.append(
                    slice_of(f"{key}-0", key, node=name, count=count, shared_counters=counters("4"))
                )
            slices.append(slice_of(f"{key}-1", key, draw(devices(counted=counted)), node=name, count=count))
    if draw(few((False, False, True))):
        selector = NodeSelector([NodeSelectorTerm([Requirement("zone", "In", ["z"])])])
        place: dict[str, Any] = draw(few(({"all_nodes": True}, {"node_selector": selector})))
        slices.append(
            slice_of(
                "wide", draw(few(("a-wide", "n1-wide", "z-wide"))), draw(devices(counted=False)), **place
            )
        )
    if draw(few((False, False, True))):
        first, second = draw(few(((1, 1), (1, 2))))
        for number, generation in enumerate((first, second)):
            slices.append(
                slice_of(
                    f"both-{number}",
                    "both",
                    [replace(d, name=f"{d.name}{number}") for d in draw(devices(counted=False))],
                    node=NODES[number],
                    generation=generation,
                    count=2 if first == second else 1,
                )
            )
    return slices


def exact(draw: st.DrawFn) -> dict[str, Any]:
    selected = draw(st.lists(few(EXPRESSIONS), max_size=1))
    return {
        "device_class_name": draw(few(("any", "any", "gpu"))),
        "count": draw(few((1, 1, 2, 3))),
        "allocation_mode": "ExactCount",
        "selectors": [DeviceSelector(CELDeviceSelector(text)) for text in selected] or None,
        "tolerations": draw(few((None, None, [DeviceToleration(operator="Exists")]))),
    }


@st.composite
def requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    match draw(few(("exact", "exact", "exact", "exact", "exact", "list", "all", "admin"))):
        case "list":
            subs = [DeviceSubRequest(name=f"s{i}", **exact(draw)) for i in range(draw(few((1, 2))))]
            return DeviceRequest(name, first_available=subs)
        case "all":
            return DeviceRequest(
                name, ExactDeviceRequest(**exact(draw) | {"allocation_mode": "All", "count": 0})
            )
        case "admin":
            return DeviceRequest(name, ExactDeviceRequest(**exact(draw), admin_access=True))
        case _:
            return DeviceRequest(name, ExactDeviceRequest(**exact(draw)))


@st.composite
def claim_sets(draw: st.DrawFn) -> list[ResourceClaim]:
    made = []
    for number in range(draw(few((1, 1, 2)))):
        asked = [draw(requests(f"r{i}")) for i in range(draw(few((1, 1, 2))))]
        one = claim(f"c{number}", requests=asked)
        if draw(few((False, False, True))):
            constraint = DeviceConstraint(match_attribute=f"gpu.example.com/{draw(few(('numa', 'model')))}")
            one = replace(
                one, spec=replace(one.spec, devices=replace(one.spec.devices, constraints=[constraint]))
            )
        made.append(one)
    return made


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    ledger = fresh()
    slices = draw(pools())
    ledger.replaced("Node", [node(n, labels={"zone": draw(few(("z", "y")))}) for n in NODES], [])
    ledger.replaced("ResourceSlice", slices, [])
    classes = [device_class("any"), device_class("gpu", EXPRESSIONS[3])]
    ledger.replaced("DeviceClass", classes, [])
    published = [
        (s.spec.pool.name, d.name, bool(d.allow_multiple_allocations))
        for s in slices
        for d in s.spec.devices or ()
    ]
    held = draw(st.lists(few(published), max_size=6, unique=True)) if published else []
    ledger.replaced(
        "ResourceClaim",
        [
            claim(
                f"held-{i}",
                [
                    result(
                        pool,
                        name,
                        share_id="s" if share else None,
                        consumed_capacity={"memory": "1Gi"} if share else None,
                    )
                ],
            )
            for i, (pool, name, share) in enumerate(held)
        ],
        [],
    )
    asked = draw(claim_sets())
    for one in asked:
        ledger.upserted("ResourceClaim", one)
    assumed = draw(st.lists(few(published), max_size=2, unique=True)) if published else []
    return Fleet(
        ledger,
        pod("q", claims=[one.metadata.name for one in asked]),
        asked,
        [DeviceID("gpu.example.com", place, name) for place, name, share in assumed if not share],
    )


def assumed_rows(fleet: Fleet, snapshot: Snapshot) -> frozenset[int]:
    row_of = snapshot.topology.table.row_of
    return frozenset(row_of[one] for one in fleet.assumed if one in row_of)


def slowly(fleet: Fleet, snapshot: Snapshot) -> Iterator[tuple[str, tuple[DeviceID, ...] | Unpredicted]]:
    """By node: what `allocate` takes, asked once a node, with all slices and all that is held."""
    slices = list(fleet.ledger._pools.slices.values())
    allocations = [
        record.claim.status.allocation
        for record in snapshot.claims.values()
        if record.claim.status.allocation
    ]
    in_use = AllocatedState.of(allocations)
    held = Holdings({*in_use.more.devices, *fleet.assumed}, in_use.more.shared, in_use.more.capacity)
    classes: Mapping[str, Any] = snapshot.classes.by_name
    for name in NODES:
        slot = snapshot.topology.slot_of[name]
        there: Node | None = snapshot.topology.nodes[slot]
        assert there is not None
        outcome = allocate(
            there,
            fleet.claims,
            classes,
            gather_pools(there, slices, FEATURES),
            AllocatedState(held),
            FEATURES,
            STEPS,
            evaluator=SELECTORS,
        )
        match outcome:
            case Allocation():
                yield name, tuple(device_of(r) for a in outcome.results for r in a.devices.results or ())
            case NoFit():
                yield name, Unpredicted.NO_FIT
            case Failure():
                yield name, Unpredicted.FAILED
            case GaveUp():
                yield name, Unpredicted.GAVE_UP
