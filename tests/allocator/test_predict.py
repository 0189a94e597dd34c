"""Predictions over columns and shapes say, node by node, what the full search says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocator import (
    AllocatedState,
    Allocation,
    Failure,
    Features,
    NoFit,
    Outcome,
    SliceIndex,
    allocate,
    gather_pools,
)
from extender.allocator.columns import SelectorColumns
from extender.allocator.demand import Demand
from extender.allocator.outcome import device_of
from extender.allocator.predict import Predictor
from extender.allocator.prediction import Unpredicted
from extender.allocator.shapes import ShapeSearch
from extender.api.core import Node
from extender.api.meta import ObjectMeta
from extender.api.resource import (
    AllocationResult,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from extender.inventory.ledger import Ledger
from extender.model.device import DeviceID
from extender.selectors import Environment
from tests.allocator.builders import (
    CLASSES,
    DRIVER,
    alternatives,
    capacity,
    claim,
    device,
    match,
    request,
    slice_of,
    sub,
)

_FEATURES = Features.default("1.37")
_STEPS = 20_000
_MODEL_A = f'device.attributes["{DRIVER}"].model == "a"'
_HAS_B = f'device.attributes["{DRIVER}"].?model.orValue("b") == "b"'


@dataclass(frozen=True)
class Fleet:
    """Nodes with their slices (a wide pool among them, perhaps), claims that hold devices, and a demand."""

    nodes: list[Node]
    slices: list[ResourceSlice]
    holders: list[ResourceClaim]
    wanted: list[ResourceClaim]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    nodes = [
        Node(ObjectMeta(name=f"node-{i}", uid=f"uid-{i}", labels={"zone": "ab"[i % 2]})) for i in range(3)
    ]
    slices: list[ResourceSlice] = []
    plain = draw(st.booleans())  # counting answers plain fleets, the search all others
    for node in nodes:
        name = node.metadata.name
        many = draw(st.sampled_from([0, 2, 3, 3, 4]))
        devices = [_device(draw, f"gpu-{i}", plain=plain) for i in range(many)]
        counted = any(item.consumes_counters for item in devices)
        slices.append(slice_of(devices, name=f"{name}-a", pool=name, node=name, count=2 if counted else 1))
        if counted:
            counters = [CounterSet("set", {"slots": Counter(str(draw(st.integers(1, 3))))})]
            slices.append(
                slice_of([], name=f"{name}-b", pool=name, node=name, count=2, shared_counters=counters)
            )
    if not plain and draw(st.integers(0, 2)) == 0:
        wide = [device(f"wide-{i}", {"model": draw(st.sampled_from("ab"))}) for i in range(2)]
        pool = draw(st.sampled_from(["a-wide", "z-wide"]))
        slices.append(slice_of(wide, name="wide", pool=pool, node=None, all_nodes=True))
    holders = [
        _holder(DeviceID(DRIVER, item.spec.pool.name, found.name))
        for item in slices
        for found in item.spec.devices or ()
        if not found.allow_multiple_allocations and draw(st.integers(0, 3)) == 0
    ]
    requests = [_request(draw, f"req-{i}", plain=plain) for i in range(draw(st.integers(1, 2)))]
    constraints = () if plain else draw(st.sampled_from([(), (), (match(f"{DRIVER}/numa"),)]))
    return Fleet(nodes, slices, holders, [claim(*requests, constraints=constraints)])


def _device(draw: st.DrawFn, name: str, *, plain: bool) -> Device:
    fields: dict[str, object] = {}
    kind = "plain" if plain else draw(st.sampled_from(["plain", "plain", "counters", "shared"]))
    if kind == "counters":
        taken = {"slots": Counter(draw(st.sampled_from(["1", "2"])))}
        fields["consumes_counters"] = [DeviceCounterConsumption("set", taken)]
    if kind == "shared":
        fields["capacity"] = {"memory": capacity("4")}
        fields["allow_multiple_allocations"] = True
    if draw(st.integers(0, 4)) == 0:
        fields["taints"] = [DeviceTaint("heat", "", draw(st.sampled_from(["NoSchedule", "None"])))]
    if draw(st.integers(0, 8)) == 0:
        fields["binding_conditions"] = ["ready"]
    model = draw(st.sampled_from(["a", "a", "b", None]))
    numa = draw(st.sampled_from([0, 1]))
    return device(name, {"numa": numa} | ({"model": model} if model else {}), **fields)


def _holder(held: DeviceID) -> ResourceClaim:
    name = f"holder-{held.pool}-{held.device}"
    result = DeviceRequestAllocationResult("req", held.driver, held.pool, held.device)
    allocation = AllocationResult(DeviceAllocationResult([result]))
    return ResourceClaim(
        ObjectMeta(name=name, namespace="team", uid=f"uid-{name}"), status=ResourceClaimStatus(allocation)
    )


def _request(draw: st.DrawFn, name: str, *, plain: bool) -> DeviceRequest:
    expressions = draw(st.sampled_from([(), (), (_MODEL_A,), (_HAS_B,)]))
    form = "plain" if plain else draw(st.sampled_from(["plain", "plain", "all", "either", "share"]))
    if form == "either":
        return alternatives(name, sub("two", 2, *expressions), sub("one", 1))
    if form == "all":
        return request(name, 1, *expressions, mode="All")
    return request(
        name,
        draw(st.integers(1, 3)),
        *expressions,
        amounts={"memory": "1"} if form == "share" else None,
        tolerations=draw(st.sampled_from([None, [DeviceToleration("heat", "Exists")]])),
    )


def _ledger(fleet: Fleet) -> Ledger:
    ledger = Ledger(ignored_drivers=[])
    for node in fleet.nodes:
        ledger.upserted("Node", node)
    for item in fleet.slices:
        ledger.upserted("ResourceSlice", item)
    for device_class in CLASSES.values():
        ledger.upserted("DeviceClass", device_class)
    for holder in (*fleet.holders, *fleet.wanted):
        ledger.upserted("ResourceClaim", holder)
    return ledger


def _searched(fleet: Fleet, node: Node, engine: SelectorColumns) -> Outcome:
    in_use = AllocatedState.of(
        holder.status.allocation for holder in fleet.holders if holder.status.allocation is not None
    )
    pools = gather_pools(node, SliceIndex(fleet.slices), _FEATURES)
    return allocate(node, fleet.wanted, CLASSES, pools, in_use, _FEATURES, _STEPS, evaluator=engine)


@settings(max_examples=250, deadline=None)
@given(fleet=fleets())
def test_every_node_is_predicted_as_the_full_search_finds_it(fleet: Fleet) -> None:
    engine = SelectorColumns(Environment())
    predictor = Predictor(engine, ShapeSearch(engine, engine.relevant, _FEATURES, steps=_STEPS))
    snapshot = _ledger(fleet).snapshot()
    topology = snapshot.topology
    slots = np.array([topology.slot_of[node.metadata.name] for node in fleet.nodes], np.int32)
    demand = Demand(tuple(fleet.wanted), (), (), {}, None, {})
    predicted = predictor.predict(demand, slots, snapshot)
    for index, node in enumerate(fleet.nodes):
        outcome = _searched(fleet, node, engine)
        picks = [(pick.request, topology.table.ids[pick.row]) for pick in predicted.picks(index)]
        match outcome:
            case Allocation():
                results = outcome.results[0].devices.results or []
                assert picks == [(result.request, device_of(result)) for result in results]
                assert predicted.reason(index) is None
            case NoFit():
                assert predicted.reason(index) == Unpredicted.NO_FIT
            case Failure():
                assert predicted.reason(index) == Unpredicted.FAILED
            case _:
                assert predicted.reason(index) == Unpredicted.GAVE_UP
