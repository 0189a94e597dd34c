"""The ledger: the one place where cluster state changes. Fed by reflectors, read through `snapshot()`.

Called on the event loop only; nothing here waits, so a verb sees each event whole or not at all.
Never: I/O, clocks, decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import msgspec
import numpy as np

from extender.api.core import Namespace, Node, Pod
from extender.api.quantity import QuantityError
from extender.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.inventory.claims import ClaimTable
from extender.inventory.classes import ClassTable
from extender.inventory.devices import DeviceTable
from extender.inventory.inflight import InFlight
from extender.inventory.nodes import NodeTable
from extender.inventory.occupancy import OccupancyColumns
from extender.inventory.pods import PodRecord, PodTable, pod_claim_names
from extender.inventory.pools import PoolTable
from extender.inventory.requests import is_extended_resource, pod_requests
from extender.inventory.salvage import salvage_claim, salvage_pod
from extender.inventory.snapshot import Snapshot
from extender.inventory.topology import TopologyBuilder
from extender.model.device import DeviceID
from extender.model.errors import WireError
from extender.model.ids import ObjectKey, PoolKey

_FEW_DEAD = 1000


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
    def name(self) -> str: ...  # noqa: D102 - see the protocol it mirrors
    @property
    def uid(self) -> str: ...  # noqa: D102 - see the protocol it mirrors
    @property
    def raw(self) -> bytes: ...  # noqa: D102 - see the protocol it mirrors


class Ledger:
    """All kinds by their tables. Objects of kinds without a table are kept whole in `others`."""

    def __init__(self, ignored_drivers: Sequence[str], observers: Sequence[Observer] = ()) -> None:
        self.in_flight = InFlight()
        self._unread: dict[str, set[ObjectKey]] = {}
        self.others: dict[str, dict[ObjectKey, Any]] = {}
        self._observers = tuple(observers)
        self._nodes = NodeTable()
        self._pods = PodTable(self._nodes)
        self._claims = ClaimTable()
        self._classes = ClassTable()
        self._pools = PoolTable()
        self._devices = DeviceTable()
        self._rows_of: dict[PoolKey, dict[str, int]] = {}
        self._occupancy = OccupancyColumns()
        self._builder = TopologyBuilder(ignored_drivers)
        self._namespace_objects: dict[str, Namespace] = {}
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
        """An object was added or modified. Raises WireError, changing nothing, for a bad quantity in it."""
        if kind in self._unread:
            self._unread[kind].discard(_key(obj))
        try:
            self._upsert(kind, obj)
        except QuantityError as error:
            raise WireError(f"{kind} {_key(obj)}: {error}") from error

    def deleted(self, kind: str, obj: object) -> None:
        """An object was deleted; `obj` is its last state."""
        key = _key(obj)
        if kind in self._unread:
            self._unread[kind].discard(key)
        self._delete(kind, key, _uid(obj))

    def replaced(self, kind: str, objects: Iterable[object], undecodable: Iterable[Unread]) -> None:
        """A full list arrived: what it does not hold has vanished, what it holds unchanged is left alone."""
        arrived = list(objects)
        unread = list(undecodable)
        present = {(_key(obj), _uid(obj)): obj for obj in arrived}
        unread_keys = {ObjectKey(what.namespace, what.name) for what in unread}
        former = self._unread.pop(kind, set())
        same: set[tuple[ObjectKey, str]] = set()
        for obj in self._known(kind):
            mark = (_key(obj), _uid(obj))
            found = present.get(mark)
            if found is None:
                if mark[0] not in unread_keys:
                    self._delete(kind, *mark)
            elif _version(found) and _version(found) == _version(obj) and mark[0] not in former:
                same.add(mark)
        for mark, obj in present.items():
            if mark not in same:
                try:
                    self.upserted(kind, obj)
                except WireError:
                    self.undecodable(kind, _Encoded(*mark, msgspec.json.encode(obj)))
        for what in unread:
            self.undecodable(kind, what)
        if kind == "Pod":
            self.in_flight.listed({uid for _, uid in present} | {what.uid for what in unread})

    def undecodable(self, kind: str, what: Unread) -> None:
        """An object could not be read: what it may hold counts as taken, nothing else suffers."""
        key = ObjectKey(what.namespace, what.name)
        self._unread.setdefault(kind, set()).add(key)
        salvaged: object | None = None
        if kind == "ResourceClaim":
            former = self._claims.records.get(key)
            salvaged = salvage_claim(what.raw, former.claim if former is not None else None)
        elif kind == "Pod":
            salvaged = salvage_pod(what.raw)
        elif kind == "ResourceSlice" and what.name:
            # Without this slice its pool is incomplete: no device of it is predicted or allocated.
            self._delete(kind, key, what.uid)
        if salvaged is not None:
            self._upsert(kind, salvaged)

    # ---- what everybody else calls

    def snapshot(self) -> Snapshot:
        """The state of now; the same object until something changes."""
        if self._snapshot is None:
            self._compact()
            topology = self._builder.current(self._nodes, self._pools, self._devices, self._rows_of)
            self._snapshot = Snapshot(
                generation=self._generation,
                topology=topology,
                occupancy=self._occupancy.view(len(self._devices)),
                nodes=self._nodes.columns(),
                classes=self._classes.view(),
                claims=self._claims.records.copy(),
                holders=self._claims.holders.copy(),
                pods=self._pods.by_uid.copy(),
                pod_uids=self._pods.uid_of.copy(),
                namespaces=self._namespace_objects,
            )
        return self._snapshot

    def pod_by_name(self, namespace: str, name: str) -> PodRecord | None:
        """The record of a pod by its name."""
        uid = self._pods.uid_of.get(ObjectKey(namespace, name))
        return None if uid is None else self._pods.by_uid.get(uid)

    def claim_named(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as last seen."""
        record = self._claims.records.get(ObjectKey(namespace, name))
        return None if record is None else record.claim

    @property
    def unreadable(self) -> Mapping[str, int]:
        """Objects by kind that are there but can't be decoded."""
        return {kind: len(keys) for kind, keys in self._unread.items() if keys}

    def objects(self, kind: str) -> list[Any]:
        """All objects of a kind as they were last seen."""
        return self._known(kind)

    def counts(self) -> dict[str, int]:
        """Objects by kind, as the ledger holds them."""
        counted = {
            "Node": len(self._nodes),
            "Pod": len(self._pods.by_uid),
            "ResourceSlice": len(self._pools.slices),
            "ResourceClaim": len(self._claims.records),
            "DeviceClass": len(self._classes.view().by_name),
            "Namespace": len(self._namespace_objects),
            "DeviceTaintRule": len(self._pools.rules()),
        }
        counted.update({kind: len(objects) for kind, objects in self.others.items()})
        return counted

    @property
    def double_granted(self) -> int:
        """How many devices several claims hold and do not share, now."""
        return len(self._claims.double_granted)

    # ---- kinds

    def _touch(self) -> None:
        self._generation += 1
        self._snapshot = None

    def _upsert(self, kind: str, obj: object) -> None:
        self._touch()
        upsert = self._upserts.get(kind)
        if upsert is not None:
            upsert(obj)
        else:
            self.others.setdefault(kind, {})[_key(obj)] = obj

    def _delete(self, kind: str, key: ObjectKey, uid: str) -> None:
        self._touch()
        delete = self._deletes.get(kind)
        if delete is not None:
            delete(key, uid)
        else:
            self.others.get(kind, {}).pop(key, None)

    def _known(self, kind: str) -> list[Any]:
        """All objects of a kind as they were last seen."""
        held: Mapping[str, Callable[[], Iterable[Any]]] = {
            "Node": lambda: filter(None, self._nodes.nodes),
            "Pod": lambda: (record.pod for record in self._pods.by_uid.values()),
            "ResourceSlice": self._pools.slices.values,
            "ResourceClaim": lambda: (record.claim for record in self._claims.records.values()),
            "DeviceClass": self._classes.view().by_name.values,
            "Namespace": self._namespace_objects.values,
            "DeviceTaintRule": self._pools.rules,
        }
        return list(held.get(kind, self.others.get(kind, {}).values)())

    def _upsert_node(self, node: Node) -> None:
        slot = self._nodes.upsert(node)
        if slot is not None:
            self._builder.slot_changed(slot)

    def _delete_node(self, name: str) -> None:
        slot = self._nodes.delete(name)
        if slot is not None:
            self._builder.slot_changed(slot)

    def _upsert_pod(self, pod: Pod) -> None:
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        former = self._pods.uid_of.get(key)
        if former is not None and former != pod.metadata.uid:
            self._delete_pod(key, former)
        before, record = self._pods.upsert(pod)
        self.in_flight.pod_changed(before.pod if before is not None else None, pod)
        if record.node and (before is None or not before.node):
            for observer in self._observers:
                observer.pod_bound(record)

    def _delete_pod(self, key: ObjectKey, uid: str) -> None:
        record = self._pods.delete(uid or self._pods.uid_of.get(key) or "")
        if record is None:
            return
        self.in_flight.gone(record.uid)
        for observer in self._observers:
            observer.pod_gone(record)

    def _upsert_slice(self, published: ResourceSlice) -> None:
        self._settle(self._pools.upsert(published))

    def _upsert_rule(self, rule: DeviceTaintRule) -> None:
        self._settle(self._pools.upsert_rule(rule))

    def _settle(self, touched: set[PoolKey]) -> None:
        rows = len(self._devices)
        nodes = self._pools.settle(touched)
        for key in touched:
            self._enter(key)
        for node in nodes:
            local = self._pools.local(node)
            usable = [row for pool in local if pool.usable for row in self._rows_of[pool.key].values()]
            self._builder.node_pools_changed(node, local, usable)
        self._builder.wide_pools_changed()
        fresh = self._devices.ids[rows:]
        if fresh:
            self._occupancy.update(self._devices, fresh, self._claims.holders)

    def _enter(self, key: PoolKey) -> None:
        """Rows for the devices of a pool, those of the newest generation first; none for the vanished."""
        state = self._pools.state(key)
        table = self._devices
        before = self._rows_of.pop(key, {})
        now: dict[str, int] = {}
        if state is not None:
            for device in state.devices():
                name = device.name
                if name not in now:
                    row = before.get(name)
                    if row is None or table.devices[row] != device:
                        row = table.upsert(key.driver, key.pool, device)
                    now[name] = row
            if state.node is None:
                for device in state.older_devices():
                    if device.name not in now:
                        now[device.name] = table.upsert(key.driver, key.pool, device)
        for vanished in before.keys() - now.keys():
            table.forget(DeviceID(key.driver, key.pool, vanished))
        if state is not None:
            self._rows_of[key] = now

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
        owners = [owner.uid for owner in claim.metadata.owner_references or () if owner.kind == "Pod"]
        # A claim that belongs to a pod serves no other; any pod in flight may wait for a claim of its own.
        for uid in owners or [offer.pod.metadata.uid for offer in self.in_flight.offers()]:
            if self.in_flight.has(uid) and self._all_allocated(uid, claim):
                self.in_flight.ended(uid)

    def _all_allocated(self, uid: str, last: ResourceClaim) -> bool:
        """Whether every claim of the pod is allocated, `last` being one of them."""
        record = self._pods.by_uid.get(uid)
        if record is None or record.key.namespace != last.metadata.namespace:
            return False
        names = pod_claim_names(record.pod)
        if names is None or last.metadata.name not in names or self._waits_for_special_claim(record.pod):
            return False
        claims = [self._claims.records.get(ObjectKey(record.key.namespace, name)) for name in names]
        return all(held is not None and held.claim.status.allocation is not None for held in claims)

    def _waits_for_special_claim(self, pod: Pod) -> bool:
        """Whether the scheduler has yet to make a claim for extended resources that classes stand for."""
        if pod.status.extended_resource_claim_status is not None:
            return False
        find = self._classes.view().for_extended_resource
        return any(
            amount and is_extended_resource(name) and find(name) is not None
            for name, amount in pod_requests(pod.spec).items()
        )

    def _delete_claim(self, key: ObjectKey) -> None:
        changed = self._claims.delete(key)
        if changed:
            self._occupancy.update(self._devices, changed, self._claims.holders)

    def _upsert_class(self, device_class: DeviceClass) -> None:
        self._classes.upsert(device_class)

    def _upsert_namespace(self, namespace: Namespace) -> None:
        self._namespace_objects = {**self._namespace_objects, namespace.metadata.name: namespace}

    def _delete_namespace(self, name: str) -> None:
        self._namespace_objects = {n: kept for n, kept in self._namespace_objects.items() if n != name}

    def _compact(self) -> None:
        """Give dead rows up once there are many: a new table, the old one stays with its readers."""
        table = self._devices
        if table.dead <= max(_FEW_DEAD, len(table.row_of) // 4):
            return
        self._devices = table.compacted()
        kept = self._devices.kept
        number = np.zeros(len(table), np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        self._occupancy.renumber(kept)
        self._builder.renumbered(number)
        numbers = number.tolist()
        self._rows_of = {
            key: {name: numbers[row] for name, row in rows.items()} for key, rows in self._rows_of.items()
        }
        self.in_flight.drop_assumptions()  # they name rows


class _Encoded(NamedTuple):
    """A decoded object that is treated as one that was not."""

    key: ObjectKey
    uid: str
    raw: bytes

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def name(self) -> str:
        return self.key.name


class _HasMetadata(Protocol):
    metadata: Any


def _key(obj: object) -> ObjectKey:
    meta = cast("_HasMetadata", obj).metadata
    return ObjectKey(meta.namespace, meta.name)


def _version(obj: object) -> str:
    return str(cast("_HasMetadata", obj).metadata.resource_version)


def _uid(obj: object) -> str:
    return str(cast("_HasMetadata", obj).metadata.uid)
