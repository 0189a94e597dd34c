"""The ledger: the one place where cluster state changes. Fed by reflectors, read through `snapshot()`.

Called on the event loop only; nothing here waits, so a verb sees each event whole or not at all.
Never: I/O, clocks, decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from extender.api.core import Namespace, Node, Pod
from extender.api.meta import ObjectMeta
from extender.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.inventory.claims import ClaimTable
from extender.inventory.classes import ClassTable
from extender.inventory.devices import DeviceTable
from extender.inventory.inflight import InFlight
from extender.inventory.nodes import NodeTable
from extender.inventory.occupancy import OccupancyColumns
from extender.inventory.pods import PodRecord, PodTable, pod_claim_names
from extender.inventory.pools import PoolTable
from extender.inventory.salvage import salvage_claim, salvage_pod
from extender.inventory.snapshot import Snapshot
from extender.inventory.topology import TopologyBuilder
from extender.model.device import DeviceID
from extender.model.ids import ObjectKey, PoolKey


class Observer(Protocol):
    """Who wants to know what an event meant; called within the event, must not wait."""

    def pod_bound(self, record: PodRecord) -> None:
        """A pod was seen bound for the first time."""

    def pod_gone(self, record: PodRecord) -> None:
        """A pod was deleted."""

    def claim_allocated(self, claim: ResourceClaim) -> None:
        """A claim got an allocation that it did not have."""


class Unread(Protocol):
    """An object that could not be decoded (extender.verbs.ports.Undecodable)."""

    @property
    def namespace(self) -> str: ...  # noqa: D102 - see the protocol it mirrors
    @property
    def name(self) -> str: ...  # noqa: D102 - likewise
    @property
    def uid(self) -> str: ...  # noqa: D102 - likewise
    @property
    def raw(self) -> bytes: ...  # noqa: D102 - likewise


class Ledger:
    """All kinds by their tables. Objects of kinds without a table are kept whole in `others`."""

    def __init__(self, ignored_drivers: Sequence[str], observers: Sequence[Observer] = ()) -> None:
        self.in_flight = InFlight()
        self.unreadable: Counter[str] = Counter()
        self.others: dict[str, dict[ObjectKey, Any]] = {}
        self._observers = tuple(observers)
        self._nodes = NodeTable()
        self._pods = PodTable(self._nodes)
        self._claims = ClaimTable()
        self._classes = ClassTable()
        self._pools = PoolTable()
        self._devices = DeviceTable()
        self._of_pool: dict[PoolKey, set[DeviceID]] = {}
        self._occupancy = OccupancyColumns()
        self._builder = TopologyBuilder(ignored_drivers)
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._generation = 0
        self._snapshot: Snapshot | None = None
        self._upserts: dict[str, Callable[[Any], None]] = {
            "Node": self._upsert_node,
            "Pod": self._upsert_pod,
            "ResourceSlice": self._upsert_slice,
            "ResourceClaim": self._upsert_claim,
            "DeviceClass": self._upsert_class,
            "Namespace": self._upsert_namespace,
            "DeviceTaintRule": self._upsert_rule,
        }
        self._deletes: dict[str, Callable[[ObjectKey, str], None]] = {
            "Node": lambda key, _: self._delete_node(key.name),
            "Pod": self._delete_pod,
            "ResourceSlice": lambda key, _: self._settle(self._pools.delete(key.name)),
            "ResourceClaim": lambda key, _: self._delete_claim(key),
            "DeviceClass": lambda key, _: self._classes.delete(key.name),
            "Namespace": lambda key, _: self._delete_namespace(key.name),
            "DeviceTaintRule": lambda key, _: self._settle(self._pools.delete_rule(key.name)),
        }

    # ---- what reflectors call (extender.verbs.ports.ObjectSink)

    def upserted(self, kind: str, obj: object) -> None:
        """An object was added or modified."""
        self._touch()
        upsert = self._upserts.get(kind)
        if upsert is not None:
            upsert(obj)
        else:
            self.others.setdefault(kind, {})[_key(obj)] = obj

    def deleted(self, kind: str, obj: object) -> None:
        """An object was deleted; `obj` is its last state."""
        self._delete(kind, _key(obj), _uid(obj))

    def replaced(self, kind: str, objects: Iterable[object], undecodable: Iterable[Unread]) -> None:
        """A full list arrived: what it does not hold has vanished."""
        present: set[tuple[ObjectKey, str]] = set()
        arrived = list(objects)
        unread = list(undecodable)
        for obj in arrived:
            present.add((_key(obj), "" if kind == "Namespace" else _uid(obj)))
        unread_keys = {ObjectKey(what.namespace, what.name) for what in unread}
        for key, uid in self._known(kind):
            if (key, uid) not in present and key not in unread_keys:
                self._delete(kind, key, uid)
        self.unreadable[kind] = 0
        for obj in arrived:
            self.upserted(kind, obj)
        for what in unread:
            self.undecodable(kind, what)

    def undecodable(self, kind: str, what: Unread) -> None:
        """An object could not be read: what it may hold counts as taken, nothing else suffers."""
        self.unreadable[kind] += 1
        salvaged: object | None = None
        if kind == "ResourceClaim":
            salvaged = salvage_claim(what.raw)
        elif kind == "Pod":
            salvaged = salvage_pod(what.raw)
        elif kind == "ResourceSlice" and what.name:
            # Without this slice its pool is incomplete: no device of it is predicted or allocated.
            self._delete(kind, ObjectKey("", what.name), what.uid)
        if salvaged is not None:
            self.upserted(kind, salvaged)

    # ---- what everybody else calls

    def snapshot(self) -> Snapshot:
        """The state of now; the same object until something changes."""
        if self._snapshot is None:
            self._compact()
            topology = self._builder.current(self._nodes, self._pools, self._devices)
            self._snapshot = Snapshot(
                generation=self._generation,
                topology=topology,
                occupancy=self._occupancy.view(len(self._devices)),
                nodes=self._nodes.columns(),
                classes=self._classes.view(),
                claims=self._claims.records.copy(),
                holders=self._claims.holders.copy(),
                pods=self._pods.by_uid.copy(),
                namespaces=self._namespaces,
            )
        return self._snapshot

    def pod_by_name(self, namespace: str, name: str) -> PodRecord | None:
        """The record of a pod by its name."""
        uid = self._pods.uid_of.get(ObjectKey(namespace, name))
        return None if uid is None else self._pods.by_uid.get(uid)

    def counts(self) -> dict[str, int]:
        """Objects by kind, as the ledger holds them."""
        counted = {
            "Node": len(self._nodes),
            "Pod": len(self._pods.by_uid),
            "ResourceSlice": len(self._pools.slices),
            "ResourceClaim": len(self._claims.records),
            "DeviceClass": len(self._classes.view().by_name),
            "Namespace": len(self._namespaces),
        }
        counted.update({kind: len(objects) for kind, objects in self.others.items()})
        return counted

    # ---- kinds

    def _touch(self) -> None:
        self._generation += 1
        self._snapshot = None

    def _delete(self, kind: str, key: ObjectKey, uid: str) -> None:
        self._touch()
        delete = self._deletes.get(kind)
        if delete is not None:
            delete(key, uid)
        else:
            self.others.get(kind, {}).pop(key, None)

    def _known(self, kind: str) -> list[tuple[ObjectKey, str]]:
        match kind:
            case "Node":
                objects: Iterable[object] = [node for node in self._nodes.nodes if node is not None]
            case "Pod":
                objects = [record.pod for record in self._pods.by_uid.values()]
            case "ResourceSlice":
                objects = self._pools.slices.values()
            case "ResourceClaim":
                objects = [record.claim for record in self._claims.records.values()]
            case "DeviceClass":
                objects = self._classes.view().by_name.values()
            case "Namespace":
                objects = [Namespace(metadata=ObjectMeta(name=name)) for name in self._namespaces]
            case "DeviceTaintRule":
                objects = self._pools.rules()
            case _:
                objects = self.others.get(kind, {}).values()
        return [(_key(obj), _uid(obj)) for obj in objects]

    def _upsert_node(self, node: Node) -> None:
        if self._nodes.upsert(node):
            self._builder.invalidate()

    def _delete_node(self, name: str) -> None:
        if self._nodes.delete(name):
            self._builder.invalidate()

    def _upsert_pod(self, pod: Pod) -> None:
        before, record = self._pods.upsert(pod)
        self.in_flight.pod_changed(before.pod if before is not None else None, pod)
        if record.node and (before is None or not before.node):
            for observer in self._observers:
                observer.pod_bound(record)

    def _delete_pod(self, key: ObjectKey, uid: str) -> None:
        record = self._pods.delete(uid or self._pods.uid_of.get(key) or "")
        if record is None:
            return
        self.in_flight.ended(record.uid)
        for observer in self._observers:
            observer.pod_gone(record)

    def _upsert_slice(self, published: ResourceSlice) -> None:
        self._settle(self._pools.upsert(published))

    def _upsert_rule(self, rule: DeviceTaintRule) -> None:
        self._settle(self._pools.upsert_rule(rule))

    def _settle(self, touched: set[PoolKey]) -> None:
        rows = len(self._devices)
        for node in self._pools.settle(touched):
            self._builder.node_pools_changed(node, self._pools, self._devices)
        for key in touched:
            self._enter(key)
        self._builder.invalidate()
        fresh = self._devices.ids[rows:]
        if fresh:
            self._occupancy.update(self._devices, fresh, self._claims.holders)

    def _enter(self, key: PoolKey) -> None:
        """Rows for the devices of a pool that has none through a node, dead rows for the vanished."""
        state = self._pools.state(key)
        now = set()
        for member in state.slices if state is not None else ():
            for device in member.spec.devices or ():
                now.add(DeviceID(key.driver, key.pool, device.name))
                self._devices.upsert(key.driver, key.pool, device)
        for vanished in self._of_pool.pop(key, set()) - now:
            self._devices.forget(vanished)
        if now:
            self._of_pool[key] = now

    def _upsert_claim(self, claim: ResourceClaim) -> None:
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        before = self._claims.records.get(key)
        changed = self._claims.upsert(claim)
        if changed:
            self._occupancy.update(self._devices, changed, self._claims.holders)
        had = before is not None and before.claim.status.allocation is not None
        if claim.status.allocation is not None and not had:
            self._end_flights(claim)
            for observer in self._observers:
                observer.claim_allocated(claim)

    def _end_flights(self, claim: ResourceClaim) -> None:
        """A pod whose claims are all allocated is no longer in flight."""
        for owner in claim.metadata.owner_references or ():
            if owner.kind == "Pod" and self._all_allocated(owner.uid):
                self.in_flight.ended(owner.uid)
        for consumer in claim.status.reserved_for or ():
            if consumer.resource == "pods" and self._all_allocated(consumer.uid):
                self.in_flight.ended(consumer.uid)

    def _all_allocated(self, uid: str) -> bool:
        record = self._pods.by_uid.get(uid)
        if record is None:
            return False
        names = pod_claim_names(record.pod)
        found = [self._claims.records.get(ObjectKey(record.key.namespace, name)) for name in names]
        return bool(found) and all(
            held is not None and held.claim.status.allocation is not None for held in found
        )

    def _delete_claim(self, key: ObjectKey) -> None:
        changed = self._claims.delete(key)
        if changed:
            self._occupancy.update(self._devices, changed, self._claims.holders)

    def _upsert_class(self, device_class: DeviceClass) -> None:
        self._classes.upsert(device_class)

    def _upsert_namespace(self, namespace: Namespace) -> None:
        self._namespaces = {**self._namespaces, namespace.metadata.name: namespace.metadata.labels or {}}

    def _delete_namespace(self, name: str) -> None:
        self._namespaces = {kept: labels for kept, labels in self._namespaces.items() if kept != name}

    def _compact(self) -> None:
        """Give dead rows up once they outnumber the live: a new table, the old one stays with its readers."""
        table = self._devices
        if table.dead <= max(1000, len(table) // 2):
            return
        self._devices = DeviceTable()
        self._occupancy = OccupancyColumns()
        self._of_pool = {}
        self._settle({state.key for state in self._pools.states()})


class _HasMetadata(Protocol):
    metadata: Any


def _key(obj: object) -> ObjectKey:
    meta = cast("_HasMetadata", obj).metadata
    return ObjectKey(meta.namespace, meta.name)


def _uid(obj: object) -> str:
    return str(cast("_HasMetadata", obj).metadata.uid)
