"""The fleet for people: nodes with their devices, and who holds them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from extender.allocator.taints import blocking_taints
from extender.api.core import Node
from extender.api.resource import Device
from extender.inventory.claims import Holding
from extender.inventory.outlook import Lookout
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceID
from extender.verbs.counting import DeviceCounter, product_of
from extender.verbs.live import telemetry_of, unpublished_on
from extender.verbs.views import (
    DeviceCount,
    DeviceRow,
    FleetView,
    HolderRow,
    NodeRow,
    NodeView,
    ResourceCount,
    TaintRow,
    TelemetryRow,
)


def fleet(
    snapshot: Snapshot,
    after: str,
    limit: int,
    lookout: Lookout | None = None,
    now: float = 0.0,
    *,
    counter: DeviceCounter | None = None,
) -> FleetView:
    """A page of nodes by name, and the totals of the whole fleet, by a counter that knows it from before."""
    names = sorted(snapshot.topology.slot_of)
    later = names[bisect_right(names, after) :]
    page = later[:limit]
    counts = (counter or DeviceCounter()).count(snapshot)
    live = _live(snapshot, page, lookout, now)
    return FleetView(
        generation=snapshot.generation,
        node_count=len(names),
        totals=_counts(counts),
        nodes=tuple(_node_row(snapshot, name, live.get(name, ())) for name in page),
        next=page[-1] if len(later) > len(page) else "",
    )


def node_view(
    snapshot: Snapshot, name: str, lookout: Lookout | None = None, now: float = 0.0
) -> NodeView | None:
    """One node with every device of its own pools."""
    node = _node(snapshot, name)
    if node is None:
        return None
    live = {row.device: row for row in _live(snapshot, [name], lookout, now)[name]}
    return NodeView(
        name=name,
        ready=_ready(node),
        schedulable=not node.spec.unschedulable,
        taints=tuple(TaintRow(t.key, t.value, t.effect) for t in node.spec.taints or ()),
        devices=tuple(
            _device_row(snapshot, pool.key.driver, pool.key.pool, device, live)
            for pool in snapshot.topology.pools.get(name, ())
            for member in pool.slices
            for device in member.spec.devices or ()
        ),
        resources=_resources(snapshot, name),
        unpublished=unpublished_on(lookout, snapshot, name, now),
    )


def _node(snapshot: Snapshot, name: str) -> Node | None:
    slot = snapshot.topology.slot_of.get(name)
    return None if slot is None else snapshot.nodes.objects[slot]


def _ready(node: Node) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or ())


def _node_row(snapshot: Snapshot, name: str, live: tuple[TelemetryRow, ...]) -> NodeRow:
    node = _node(snapshot, name)
    return NodeRow(
        name=name,
        ready=node is not None and _ready(node),
        schedulable=node is not None and not node.spec.unschedulable,
        devices=_counts(Counter(_counted(snapshot, name))),
        resources=_resources(snapshot, name),
        telemetry=live,
    )


def _live(
    snapshot: Snapshot, names: Sequence[str], lookout: Lookout | None, now: float
) -> dict[str, tuple[TelemetryRow, ...]]:
    """Telemetry by node, read at once for all of them."""
    topology = snapshot.topology
    of_node = {}
    for name in names:
        slot = topology.slot_of[name]
        of_node[name] = topology.devices_of(slot).tolist()
    found = iter(telemetry_of(lookout, snapshot, [row for rows in of_node.values() for row in rows], now))
    return {name: tuple(islice(found, len(rows))) for name, rows in of_node.items()}


def _counted(snapshot: Snapshot, name: str) -> Iterable[tuple[str, str, str]]:
    for pool in snapshot.topology.pools.get(name, ()):
        usable = pool.complete and pool.valid
        for member in pool.slices:
            for device in member.spec.devices or ():
                state = _state(snapshot, pool.key.driver, pool.key.pool, device) if usable else "unavailable"
                yield pool.key.driver, product_of(device), state


def _state(snapshot: Snapshot, driver: str, pool: str, device: Device) -> str:
    if any(holding.share_id is None for holding in snapshot.held_by(DeviceID(driver, pool, device.name))):
        return "taken"
    return "unavailable" if blocking_taints(device) else "free"


def _counts(counted: Counter[tuple[str, str, str]]) -> tuple[DeviceCount, ...]:
    kinds = sorted({(driver, product) for driver, product, _ in counted})
    return tuple(
        DeviceCount(
            driver=driver,
            product=product,
            total=sum(counted[driver, product, state] for state in ("free", "taken", "unavailable")),
            free=counted[driver, product, "free"],
            taken=counted[driver, product, "taken"],
            unavailable=counted[driver, product, "unavailable"],
        )
        for driver, product in kinds
    )


def _resources(snapshot: Snapshot, name: str) -> tuple[ResourceCount, ...]:
    slot = snapshot.topology.slot_of[name]
    rows = []
    for resource, column in sorted(snapshot.nodes.allocatable.items()):
        if "/" in resource and column[slot]:
            used = snapshot.nodes.used.get(resource)
            rows.append(
                ResourceCount(
                    resource, int(column[slot]) // 1000, int(used[slot]) // 1000 if used is not None else 0
                )
            )
    return tuple(rows)


def _device_row(
    snapshot: Snapshot, driver: str, pool: str, device: Device, live: Mapping[str, TelemetryRow]
) -> DeviceRow:
    device_id = DeviceID(driver, pool, device.name)
    attributes: dict[str, str | int | bool] = {}
    for key, value in (device.attributes or {}).items():
        for one in (value.string, value.version, value.int, value.bool):
            if one is not None:
                attributes[key] = one
    return DeviceRow(
        id=str(device_id),
        product=product_of(device),
        available=_state(snapshot, driver, pool, device) == "free",
        holders=_holders(snapshot, snapshot.held_by(device_id)),
        attributes=attributes,
        capacity={key: str(value.value) for key, value in (device.capacity or {}).items()},
        taints=tuple(TaintRow(t.key, t.value, t.effect) for t in device.taints or ()),
        telemetry=live.get(str(device_id)),
    )


def _holders(snapshot: Snapshot, holdings: Sequence[Holding]) -> tuple[HolderRow, ...]:
    rows = []
    for holding in holdings:
        claim = snapshot.claim(holding.claim.namespace, holding.claim.name)
        reserved = claim.status.reserved_for if claim is not None else None
        pods = tuple(consumer.name for consumer in reserved or () if consumer.resource == "pods")
        rows.append(
            HolderRow(holding.claim.namespace, holding.claim.name, pods, shared=holding.share_id is not None)
        )
    return tuple(rows)
