"""Short ways to write the objects that a ledger is fed with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from extender.api.core import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from extender.api.meta import Condition, ObjectMeta, OwnerReference
from extender.api.resource import (
    AllocationResult,
    CELDeviceSelector,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from extender.inventory.ledger import Ledger
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceID

DRIVER = "gpu.example.com"
GPU = "nvidia.com/gpu"


def fresh() -> Ledger:
    return Ledger(ignored_drivers=["nic.example.com"])


def node(name: str, allocatable: Mapping[str, str] | None = None, **meta: Any) -> Node:
    offered: dict[str, str | int | float] = {
        "cpu": "8",
        "memory": "16Gi",
        "pods": "110",
        **(allocatable or {}),
    }
    return Node(
        metadata=ObjectMeta(name=name, **{"uid": f"uid-{name}", **meta}),
        spec=NodeSpec(),
        status=NodeStatus(allocatable=offered),
    )


def device(name: str, **fields: Any) -> Device:
    return Device(name=name, attributes={"type": DeviceAttribute(string="gpu")}, **fields)


def consuming(name: str, amount: str, counter_set: str = "set", counter: str = "memory") -> Device:
    use = DeviceCounterConsumption(counter_set, {counter: Counter(amount)})
    return device(name, consumes_counters=[use])


def counters(amount: str, name: str = "set") -> list[CounterSet]:
    return [CounterSet(name, {"memory": Counter(amount)})]


def slice_of(
    name: str,
    pool: str,
    devices: Iterable[Device | str] = (),
    *,
    node: str | None = None,
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    version: str = "",
    **spec: Any,
) -> ResourceSlice:
    published = [device(d) if isinstance(d, str) else d for d in devices]
    return ResourceSlice(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", resource_version=version),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(pool, generation, count),
            node_name=node,
            devices=published or None,
            **spec,
        ),
    )


def result(pool: str, name: str, driver: str = DRIVER, **fields: Any) -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(request="gpu", driver=driver, pool=pool, device=name, **fields)


def claim(
    name: str,
    results: Sequence[DeviceRequestAllocationResult] | None = None,
    *,
    uid: str = "",
    owner: str = "",
    reserved_for: Sequence[str] = (),
    version: str = "",
    requests: list[DeviceRequest] | None = None,
) -> ResourceClaim:
    allocation = None
    if results is not None:
        allocation = AllocationResult(devices=DeviceAllocationResult(results=list(results)))
    owners = [OwnerReference("Pod", "owner", owner)] if owner else None
    reserved = [ResourceClaimConsumerReference("pods", f"name-{u}", u) for u in reserved_for] or None
    asked = requests or [
        DeviceRequest("gpu", ExactDeviceRequest("gpu", allocation_mode="ExactCount", count=1))
    ]
    return ResourceClaim(
        metadata=ObjectMeta(name, "ns", uid or f"uid-{name}", version, owner_references=owners),
        spec=ResourceClaimSpec(DeviceClaim(requests=asked)),
        status=ResourceClaimStatus(allocation, reserved),
    )


def pod(
    name: str,
    *,
    uid: str = "",
    node: str = "",
    phase: str = "Pending",
    requests: Mapping[str, str] | None = None,
    claims: Sequence[str] = (),
    templates: Mapping[str, str | None] | None = None,
    nominated: str = "",
    failed: str = "",
    version: str = "",
    **spec: Any,
) -> Pod:
    """`templates`: claim names made from templates by entry; `failed`: message of PodScheduled False."""
    entries = [PodResourceClaim(f"c{i}", resource_claim_name=name) for i, name in enumerate(claims)]
    entries += [PodResourceClaim(entry, resource_claim_template_name="t") for entry in templates or ()]
    made = [PodResourceClaimStatus(*item) for item in (templates or {}).items() if item[1] != "pending"]
    conditions = [Condition("PodScheduled", "False", "Unschedulable", failed)] if failed else None
    asked: dict[str, str | int | float] = dict(requests or {"cpu": "1"})
    return Pod(
        metadata=ObjectMeta(name, "ns", uid or f"uid-{name}", version),
        spec=PodSpec(
            node_name=node,
            containers=[Container("main", resources=ResourceRequirements(requests=asked))],
            resource_claims=entries or None,
            **spec,
        ),
        status=PodStatus(
            phase=phase,
            nominated_node_name=nominated,
            conditions=conditions,
            resource_claim_statuses=made or None,
        ),
    )


def device_class(
    name: str, expression: str = "", resource: str | None = None, created: str = ""
) -> DeviceClass:
    selectors = [DeviceSelector(CELDeviceSelector(expression))] if expression else None
    return DeviceClass(
        metadata=ObjectMeta(name, creation_timestamp=created or None),
        spec=DeviceClassSpec(selectors=selectors, extended_resource_name=resource),
    )


@dataclass(frozen=True)
class Unread:
    """An object that could not be decoded."""

    raw: bytes
    name: str = ""
    namespace: str = ""
    uid: str = ""
    fault: str = "fault"


def unread(obj: Any, **broken: Any) -> Unread:
    """The object with fields put in its document that its struct can't take."""
    document = msgspec.to_builtins(obj)
    for path, value in broken.items():
        *steps, last = path.split("__")
        place = document
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = value
    meta = obj.metadata
    return Unread(msgspec.json.encode(document), meta.name, meta.namespace, meta.uid)


def on_node(snapshot: Snapshot, name: str) -> list[str]:
    """Names of the devices that the allocator tries on a node, in its order."""
    topology = snapshot.topology
    slot = topology.slot_of[name]
    rows = topology.order[topology.starts[slot] : topology.starts[slot + 1]].tolist()
    return [topology.table.ids[row].device for row in rows]


def is_taken(snapshot: Snapshot, pool: str, name: str, driver: str = DRIVER) -> tuple[bool, bool]:
    """Whether the device is held whole, and in shares."""
    row = snapshot.topology.table.row_of[DeviceID(driver, pool, name)]
    return bool(snapshot.occupancy.taken[row]), bool(snapshot.occupancy.shared[row])


def amount(snapshot: Snapshot, node_name: str, resource: str) -> tuple[int, int]:
    """Allocatable and used thousandths of a node."""
    slot = snapshot.topology.slot_of[node_name]
    columns = snapshot.nodes
    return tuple(  # type: ignore[return-value]  # two elements
        int(c[resource][slot]) if resource in c else 0 for c in (columns.allocatable, columns.used)
    )


def described(snapshot: Snapshot) -> dict[str, Any]:
    """All that a snapshot says, in words that do not depend on slots, rows or the order of arrival."""
    topology, columns = snapshot.topology, snapshot.nodes
    table = topology.table

    def device_at(row: int) -> tuple[Any, ...]:
        return (
            table.ids[row],
            table.devices[row],
            table.facts[row],
            bool(snapshot.occupancy.taken[row]),
            bool(snapshot.occupancy.shared[row]),
        )

    shapes: dict[int, set[str]] = {}
    nodes = {}
    for name, slot in topology.slot_of.items():
        shapes.setdefault(int(topology.pools_shape[slot]), set()).add(name)
        rows = topology.order[topology.starts[slot] : topology.starts[slot + 1]].tolist()
        seen = columns.objects[slot]
        placed = topology.nodes[slot]
        nodes[name] = (
            topology.names[slot],
            seen,
            placed and (placed.metadata.uid, placed.metadata.labels, placed.spec),
            {resource: int(column[slot]) for resource, column in columns.allocatable.items()},
            {resource: int(column[slot]) for resource, column in columns.used.items()},
            [device_at(row) for row in rows],
            bool(topology.doubtful[slot]),
            bool(topology.grouped[slot]),
            bool(topology.accelerator[slot]),
        )
    return {
        "nodes": nodes,
        "shapes": sorted(map(sorted, shapes.values())),
        "wide": topology.wide,
        "wide devices": sorted((device_at(row) for row in topology.wide_rows.tolist()), key=lambda d: d[0]),
        "local": dict(topology.pools),
        "holders": {key: sorted(map(repr, held)) for key, held in snapshot.holders.items()},
        "claims": {key: record.claim for key, record in snapshot.claims.items()},
        "pods": dict(snapshot.pods),
        "uids": dict(snapshot.pod_uids),
        "classes": (dict(snapshot.classes.by_name), dict(snapshot.classes.by_extended_resource)),
        "namespaces": dict(snapshot.namespaces),
    }
