"""What telemetry and health say of the published devices: arrays by the ledger's row, for one moment.

An `Outlook` is immutable; `Lookout` makes the next one when topology, telemetry's rows or health have
changed, and looks again at those nodes only that changed. The readings themselves stay in the store.
Never: a judgement of a pod, or a reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from extender.inventory.columns import resized
from extender.inventory.devices import CodedColumn, DeviceTable, Int32
from extender.inventory.health import BY_GRAVITY, NODE, Finding, HealthBook
from extender.inventory.telemetry import TelemetryStore
from extender.inventory.telemetry_join import join_node
from extender.inventory.topology import Topology
from extender.model.device import DeviceID
from extender.model.reason import Reason

Int8 = npt.NDArray[np.int8]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

_LOOK_AGAIN: Final = 1.0  # seconds: a node that falls silent makes no transition
_UNSEEN: Final = -1


@dataclass(frozen=True, slots=True)
class SickNode:
    """A node on which something is unfit: how many whole GPUs telemetry lists, how many of them are unfit."""

    reason: Reason  # the gravest
    gpus: int
    unfit: int
    entirely: bool  # nothing on it is fit


@dataclass(frozen=True, eq=False, slots=True)
class Outlook:
    """Arrays by device row of `topology`.

    `rows` and `gpus` int32[rows]: telemetry's row of the device and of the whole GPU under it, -1 where there
    is none. `unfit` int8[rows]: 0, or k for `BY_GRAVITY[k - 1]`; of devices in local pools. `partly`
    bool[slots]: a device of the node is unfit. `entirely` bool[slots]: no published accelerator of it is fit.
    `sick`: nodes by slot on which anything is unfit, published or not. `accelerator` bool[rows]: of a driver
    whose devices telemetry is expected to see. `unpublished`: uuids by slot that telemetry sees and nobody
    publishes.
    """

    topology: Topology
    rows: Int32
    gpus: Int32
    unfit: Int8
    partly: Bool
    entirely: Bool
    sick: Mapping[int, SickNode]
    accelerator: Bool
    unpublished: Mapping[int, tuple[str, ...]]

    def reason(self, row: int) -> Reason | None:
        """The gravest reason against a device."""
        code = int(self.unfit[row])
        return BY_GRAVITY[code - 1] if code else None

    def of_slot(self, slot: int) -> Int32:
        """Rows of a node's own devices, int32[k]."""
        return self.topology.devices_of(slot)

    def published_not_seen(self) -> Iterator[tuple[str, DeviceID]]:
        """Accelerators by node of which telemetry knows nothing."""
        topology = self.topology
        order = topology.order
        for at in np.nonzero((self.rows[order] < 0) & self.accelerator[order])[0].tolist():
            slot = int(np.searchsorted(topology.starts, at, side="right")) - 1
            yield topology.names[slot], topology.table.ids[order[at]]

    def seen_not_published(self) -> Iterator[tuple[str, str]]:
        """Devices (node, uuid) that telemetry sees and no slice has, on nodes that are known."""
        for slot, uuids in self.unpublished.items():
            for uuid in uuids:
                yield self.topology.names[slot], uuid

    def counts(self) -> tuple[int, int]:
        """How many are published and not seen, and the reverse."""
        order = self.topology.order
        unseen = int(np.count_nonzero((self.rows[order] < 0) & self.accelerator[order]))
        return unseen, sum(map(len, self.unpublished.values()))


@dataclass(frozen=True, eq=False, slots=True)
class _Verdict:
    """On one node: a code for each of its own devices, and what it was made from."""

    slot: int
    node: SickNode
    codes: Int8
    seen: tuple[object, ...]


class Lookout:
    """Makes outlooks. `now` must be of the clock that the store and the health book are fed with."""

    def __init__(
        self, store: TelemetryStore, health: HealthBook, other_drivers: Collection[str] = ()
    ) -> None:
        """`other_drivers`: drivers whose devices no agent sees (network cards)."""
        self.store = store
        self.health = health
        others = frozenset(other_drivers)
        self._accelerator = CodedColumn(lambda facts, _: facts.driver not in others)
        self._outlook: Outlook | None = None
        self._slot_of: Int32 = np.zeros(0, np.int32)  # by device row, -1: of no node's local pools
        self._layout = -1
        self._layouts: Int64 = np.zeros(0, np.int64)  # of each slot's node when it was joined
        self._health = 0
        self._verdicts: dict[str, _Verdict] = {}
        self._judged_at = -np.inf

    def look(self, topology: Topology, now: float) -> Outlook:
        """The outlook of now; the same object until something changes."""
        outlook = self._outlook
        joined = outlook
        if joined is None or joined.topology is not topology or self._layout != self.store.layout:
            joined = self._joined(topology)
        anew = joined is not outlook
        wholly = not 0 <= now - self._judged_at < _LOOK_AGAIN
        if anew or wholly or self._health != self.health.version:
            joined = self._judged(joined, now, anew=anew, wholly=wholly)
        self._outlook = joined
        return joined

    def findings(self, outlook: Outlook, slot: int, row: int, now: float) -> list[Finding]:
        """What holds against a device, gravest first, in words."""
        if not outlook.accelerator[row]:
            return []
        return self.health.reasons(outlook.topology.names[slot], self._uuids(outlook, row), now)

    # ---- join

    def _joined(self, topology: Topology) -> Outlook:
        last = self._outlook
        slots = _slots_of(topology)
        layouts = self._current_layouts(topology)
        if last is None or (
            last.topology.table is not topology.table and not _descends(topology.table, last.topology.table)
        ):
            rows, gpus = _blank(topology.rows), _blank(topology.rows)
            unpublished: dict[int, tuple[str, ...]] = {}
            dirty = np.nonzero(layouts >= 0)[0].tolist()
        else:
            rows, gpus, before = self._carried(last, topology)
            rows[slots < 0] = gpus[slots < 0] = _UNSEEN  # of a node that is gone
            moved = slots != before
            changed = np.zeros(len(topology.names), np.bool_)
            changed[slots[moved & (slots >= 0)]] = True
            left = before[moved & (before >= 0)]
            changed[left[left < len(changed)]] = True
            changed |= layouts != resized(self._layouts, len(layouts), _UNSEEN)
            changed |= _renamed(last.topology, topology)
            dirty = np.nonzero(changed)[0].tolist()
            kept = len(topology.names)
            unpublished = {slot: uuids for slot, uuids in last.unpublished.items() if slot < kept}
        for slot in dirty:
            self._join_slot(topology, slot, rows, gpus, unpublished)
        self._slot_of, self._layouts, self._layout = slots, layouts, self.store.layout
        nobody = np.zeros(topology.rows, np.int8)
        accelerator = self._accelerator.where(topology.table, bool)[: topology.rows]
        nowhere = np.zeros(len(topology.names), np.bool_)
        return Outlook(
            topology=topology,
            rows=rows,
            gpus=gpus,
            unfit=nobody,
            partly=nowhere,
            entirely=nowhere,
            sick={},
            accelerator=accelerator,
            unpublished=unpublished,
        )

    def _current_layouts(self, topology: Topology) -> Int64:
        layouts = np.full(len(topology.names), _UNSEEN, np.int64)
        slot_of = topology.slot_of
        for node in self.store.nodes():
            slot = slot_of.get(node.name)
            if slot is not None:
                layouts[slot] = node.layout
        return layouts

    def _carried(self, last: Outlook, topology: Topology) -> tuple[Int32, Int32, Int32]:
        """The last join (rows, gpus, slots) under the row numbers of `topology`, unshared."""
        rows, gpus, slots = last.rows, last.gpus, self._slot_of
        if topology.table is not last.topology.table:
            kept = topology.table.kept
            known = kept < len(rows)
            at = np.where(known, kept, 0)
            rows, gpus, slots = (
                np.where(known, column[at], _UNSEEN).astype(np.int32) for column in (rows, gpus, slots)
            )
        return tuple(resized(column, topology.rows, _UNSEEN) for column in (rows, gpus, slots))  # type: ignore[return-value]  # three of them

    def _join_slot(
        self,
        topology: Topology,
        slot: int,
        rows: Int32,
        gpus: Int32,
        unpublished: dict[int, tuple[str, ...]],
    ) -> None:
        mine = topology.devices_of(slot)
        unpublished.pop(slot, None)
        node = self.store.node(topology.names[slot]) if topology.names[slot] else None
        if node is None:
            rows[mine] = gpus[mine] = _UNSEEN
            return
        table = topology.table
        joined = join_node(node, self.store, [(r, table.ids[r], table.facts[r]) for r in mine.tolist()])
        for row, found, gpu in joined.found:
            rows[row], gpus[row] = found, gpu
        if joined.seen_not_published:
            unpublished[slot] = joined.seen_not_published

    # ---- health

    def _judged(self, joined: Outlook, now: float, *, anew: bool, wholly: bool) -> Outlook:
        """`anew`: the join is; `wholly`: look at every node, also at those that made no transition."""
        changed = self.health.changed_since(self._health)
        self._health = self.health.version
        if changed is None:
            changed, wholly = {*self._verdicts, *_names(self.health, now)}, True
        names = changed
        if wholly or anew:
            self._judged_at = now
            names = {*self._verdicts, *_names(self.health, now), *changed}
        different = anew
        for name in names:
            different |= self._judge(joined, name, now, again=name in changed)
        if not different:
            return joined
        topology = joined.topology
        unfit = np.zeros(topology.rows, np.int8)
        for verdict in self._verdicts.values():
            unfit[joined.of_slot(verdict.slot)] = verdict.codes
        counts = topology.per_node(unfit[topology.order] > 0)
        expected = topology.per_node(joined.accelerator[topology.order])
        return replace(
            joined,
            unfit=unfit,
            partly=counts > 0,
            entirely=(expected > 0) & (counts == expected),
            sick={verdict.slot: verdict.node for verdict in self._verdicts.values()},
        )

    def _judge(self, joined: Outlook, name: str, now: float, *, again: bool) -> bool:
        """Whether the verdict on a node is another than before."""
        holding = self.health.holding(name, now)
        slot = joined.topology.slot_of.get(name)
        if not holding or slot is None:
            return self._verdicts.pop(name, None) is not None
        rows = joined.of_slot(slot)
        former = self._verdicts.get(name)
        seen = (slot, holding, int(self._layouts[slot]), rows.tobytes())
        if former is not None and not again and former.seen == seen:
            return False
        codes = np.zeros(len(rows), np.int8)
        for at, row in enumerate(rows.tolist()):
            mine = self._uuids(joined, row)
            if joined.accelerator[row] and not holding.isdisjoint((NODE, *mine)):
                codes[at] = _code(self.health.reasons(name, mine, now))
        verdict = self._verdicts[name] = _Verdict(slot, self._sick_node(name, holding, now), codes, seen)
        return former is None or (former.slot, former.node, former.codes.tobytes()) != (
            slot,
            verdict.node,
            codes.tobytes(),
        )

    def _sick_node(self, name: str, uuids: frozenset[str], now: float) -> SickNode:
        node = self.store.node(name)
        gpus = [uuid for uuid, row in node.rows.items() if self._is_whole(row)] if node is not None else []
        gravest = self.health.reasons(name, uuids, now)
        reason = gravest[0].reason if gravest else Reason.DEVICE_UNHEALTHY
        if NODE in uuids:
            return SickNode(reason, len(gpus), len(gpus), entirely=True)
        unfit = sum(uuid in uuids for uuid in gpus)
        return SickNode(reason, len(gpus), unfit, entirely=bool(gpus) and unfit == len(gpus))

    def _is_whole(self, row: int) -> bool:
        device = self.store.device(row)
        return device is not None and device.mig is None

    def _uuids(self, outlook: Outlook, row: int) -> list[str]:
        """The device's uuid and that of the GPU under it, as telemetry knows them."""
        found = (self.store.device(int(at)) for at in {outlook.rows[row], outlook.gpus[row]})
        return [device.uuid for device in found if device is not None]


def _names(health: HealthBook, now: float) -> set[str]:
    return {name for name, _ in health.unhealthy(now)}


def _code(findings: list[Finding]) -> int:
    return BY_GRAVITY.index(findings[0].reason) + 1 if findings else 0


def _slots_of(topology: Topology) -> Int32:
    """The slot of each device row, int32[rows], -1 for those of no local pool."""
    slots = _blank(topology.rows)
    slots[topology.order] = topology.slot_at
    return slots


def _descends(table: DeviceTable, former: DeviceTable) -> bool:
    return table.parent is not None and table.parent() is former


def _renamed(last: Topology, topology: Topology) -> Bool:
    """Slots that belong to another node than before, bool[slots]."""
    if last.names is topology.names:
        return np.zeros(len(topology.names), np.bool_)
    before = [*last.names, *[""] * (len(topology.names) - len(last.names))]
    pairs = zip(before, topology.names, strict=False)
    return np.fromiter((old != new for old, new in pairs), np.bool_, len(topology.names))


def _blank(size: int) -> Int32:
    return np.full(size, _UNSEEN, np.int32)
