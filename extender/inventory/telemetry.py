"""The live telemetry of the fleet: per node who speaks, per device a row of `Columns` and its last letter.

All instants are of our own clock (`now`, seconds): a sample's readings are `sent_ns - read_ns` old when it
arrives, so the sender's clocks never enter. Keyed by (node, uuid): nobody writes another node's row.
Never: I/O, a clock, or a judgement of what a reading means.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final

import msgspec
import numpy as np

from extender.api.telemetry import (
    READINGS,
    Absence,
    Device,
    Driver,
    DriverState,
    Sample,
    Xid,
)
from extender.inventory.telemetry_columns import Cell, Codes, Columns, Floats, Rows

# Below every value, so that values and absences fit one array on their way into the columns.
_ABSENT: Final = {
    Absence.UNSUPPORTED: -int(Cell.UNSUPPORTED),
    Absence.LOST: -int(Cell.LOST),
    Absence.ERROR: -int(Cell.ERROR),
}
_RETIRED_KEPT: Final = 16
_VANISHED_KEPT: Final = 64


class Source(IntEnum):
    """Where a reading came from, best first."""

    AGENT = 0
    DCGM = 1
    PROMETHEUS = 2


class Refusal(StrEnum):
    """Why a sample was not applied."""

    REPLAYED = "replayed"  # its sequence number is not beyond the last one
    SUPERSEDED = "superseded"  # of an agent whose successor has already spoken
    CONTRADICTORY = "contradictory"  # it contradicts itself


@dataclass(frozen=True, slots=True)
class Ages:
    """When readings lose their worth, in seconds; `half_life_s` is that of the smoothing."""

    fresh_s: float = 45.0
    absent_s: float = 300.0
    forget_s: float = 3600.0
    half_life_s: float = 60.0


@dataclass(frozen=True, slots=True)
class HeardXid:
    """An XID that was not heard before, at an instant of our clock."""

    uuid: str
    xid: Xid
    at: float


@dataclass(frozen=True, slots=True)
class Applied:
    """What a sample brought: `rows` belong to `devices`, in order."""

    node: str
    boot_id: str
    driver: Driver | None  # None: the source does not know
    devices: Sequence[Device]
    rows: Rows
    read_at: float
    xids: Sequence[HeardXid] = ()
    vanished: Sequence[Device] = ()  # whole GPUs that a sound driver no longer lists


@dataclass(slots=True)
class NodeTelemetry:
    """What is known of one node. To be read only."""

    name: str
    boot_id: str = ""
    agent_id: str = ""
    sequence: int = 0
    serial: int = 0  # of the last XID heard from this agent
    driver: Driver | None = None
    heard_at: float = -np.inf  # when anything last came, by our clock
    layout: int = 0  # the store's `layout` when a row of this node last came, went or changed its device
    retired: deque[str] = field(default_factory=lambda: deque(maxlen=_RETIRED_KEPT))
    rows: dict[str, int] = field(default_factory=dict)
    instances: dict[tuple[str, int], str] = field(default_factory=dict)  # (parent, GPU instance): MIG uuid
    vanished: dict[str, float] = field(default_factory=dict)


class TelemetryStore:
    """All nodes. `layout` grows when rows come, go or change their device: time to join again."""

    def __init__(self, ages: Ages | None = None) -> None:
        self.ages = ages or Ages()
        self.columns = Columns(self.ages.half_life_s, self.ages.fresh_s, self.ages.absent_s)
        self._nodes: dict[str, NodeTelemetry] = {}
        self._devices: list[Device | None] = []
        self.layout = 0

    def __len__(self) -> int:
        return len(self.columns)

    def node(self, name: str) -> NodeTelemetry | None:
        """What is known of a node; None when nothing ever came, or it is forgotten."""
        return self._nodes.get(name)

    def uuids(self, name: str) -> Collection[str] | None:
        """The devices of a node that have a row; None for a node that is not known."""
        node = self._nodes.get(name)
        return None if node is None else node.rows.keys()

    def nodes(self) -> Iterator[NodeTelemetry]:
        """Every node that is known."""
        return iter(self._nodes.values())

    def device(self, row: int) -> Device | None:
        """The last letter about a row's device: name, links, fabric, processes."""
        return self._devices[row] if 0 <= row < len(self._devices) else None

    def apply(self, sample: Sample, now: float) -> Applied | Refusal:
        """Take an agent's sample, whose sender is proved to speak for `sample.node`, or say why not.

        A refused sample changes nothing.
        """
        refusal = self._refusal(sample)
        if refusal is not None:
            return refusal
        node = self._nodes.setdefault(sample.node, NodeTelemetry(sample.node))
        if (sample.boot_id, sample.agent_id) != (node.boot_id, node.agent_id):
            if node.agent_id:
                node.retired.append(node.agent_id)
            node.boot_id, node.agent_id, node.serial = sample.boot_id, sample.agent_id, 0
        node.sequence = sample.sequence
        node.driver = sample.driver
        node.heard_at = now
        read_at = now - (sample.sent_ns - sample.read_ns) / 1e9
        rows = self._write(node, sample.devices, read_at, Source.AGENT)
        vanished: list[Device] = []
        if sample.driver.state is DriverState.OK:
            vanished = self._vanish(node, {d.uuid for d in sample.devices}, now)
        return Applied(
            node=sample.node,
            boot_id=sample.boot_id,
            driver=sample.driver,
            devices=sample.devices,
            rows=rows,
            read_at=read_at,
            xids=self._new_xids(node, sample, now),
            vanished=vanished,
        )

    def apply_readings(
        self, name: str, devices: Sequence[Device], source: Source, age_s: float, now: float
    ) -> Applied:
        """Take readings of another source for a node, `age_s` old. `ERROR` stands for what it doesn't know.

        A MIG device may come under `instance_uuid`: parent and GPU instance say which it is.
        """
        node = self._nodes.setdefault(name, NodeTelemetry(name))
        node.heard_at = max(node.heard_at, now)
        read_at = now - max(0.0, age_s)
        unique = list({self._known_as(node, d): d for d in devices}.items())
        known = [d if d.uuid == uuid else msgspec.structs.replace(d, uuid=uuid) for uuid, d in unique]
        rows = self._write(node, known, read_at, source)
        return Applied(
            node=name,
            boot_id=node.boot_id,
            driver=None,
            devices=known,
            rows=rows,
            read_at=read_at,
            xids=[HeardXid(d.uuid, x, read_at) for d in known for x in d.xids],
        )

    def forget(self, name: str) -> None:
        """The node is gone from the cluster."""
        node = self._nodes.pop(name, None)
        if node is not None:
            for uuid in list(node.rows):
                self._drop(node, uuid)

    def expire(self, now: float) -> None:
        """Forget nodes that have been silent, and GPUs that have been gone, for `forget_s`."""
        for node in list(self._nodes.values()):
            if now - node.heard_at > self.ages.forget_s:
                self.forget(node.name)
                continue
            for uuid, since in list(node.vanished.items()):
                if now - since > self.ages.forget_s:
                    self._drop(node, uuid)

    def _refusal(self, sample: Sample) -> Refusal | None:
        node = self._nodes.get(sample.node)
        if node is not None:
            if sample.agent_id in node.retired:
                return Refusal.SUPERSEDED
            same = (sample.boot_id, sample.agent_id) == (node.boot_id, node.agent_id)
            if same and sample.sequence <= node.sequence:
                return Refusal.REPLAYED
        return Refusal.CONTRADICTORY if _contradicts_itself(sample) else None

    def _known_as(self, node: NodeTelemetry, device: Device) -> str:
        if device.mig is None:
            return device.uuid
        return node.instances.get((device.mig.parent, device.mig.gpu_instance), device.uuid)

    def _write(self, node: NodeTelemetry, devices: Sequence[Device], read_at: float, source: Source) -> Rows:
        rows = np.array([self._row(node, d, source) for d in devices], dtype=np.int32)
        if len(rows):
            self.columns.write(rows, *_numbers(devices), read_at, source)
        return rows

    def _row(self, node: NodeTelemetry, device: Device, source: Source) -> int:
        row = node.rows.get(device.uuid)
        if row is None:
            row = self.columns.take()
            node.rows[device.uuid] = row
            self._devices.extend([None] * (row + 1 - len(self._devices)))
            self._moved(node)
        elif source is not Source.AGENT:
            return row  # an agent's letter says more
        before = self._devices[row]
        if before is None or (before.mig, before.pci, before.minor) != (device.mig, device.pci, device.minor):
            self._moved(node)
        self._devices[row] = device
        if device.mig is not None:
            self._instance(node, device.uuid, device.mig.parent, device.mig.gpu_instance)
        if node.vanished:
            node.vanished.pop(device.uuid, None)
        return row

    def _instance(self, node: NodeTelemetry, uuid: str, parent: str, gpu_instance: int) -> None:
        stand_in = instance_uuid(parent, gpu_instance)
        if uuid != stand_in and stand_in in node.rows:
            self._drop(node, stand_in)  # now its true name is known
        node.instances.setdefault((parent, gpu_instance), uuid)

    def _vanish(self, node: NodeTelemetry, present: set[str], now: float) -> list[Device]:
        if len(present) == len(node.rows):
            return []
        gone: list[Device] = []
        for uuid in [u for u in node.rows if u not in present]:
            row = node.rows[uuid]
            device = self._devices[row]
            if device is None or device.mig is not None:  # a MIG device comes and goes by design
                self._drop(node, uuid)
                continue
            gone.append(device)
            node.vanished.setdefault(uuid, now)
            self.columns.lose(row, now)
        for uuid in list(node.vanished)[: max(0, len(node.vanished) - _VANISHED_KEPT)]:
            self._drop(node, uuid)  # whatever a sender names anew each time, it takes bounded room
        return gone

    def _drop(self, node: NodeTelemetry, uuid: str) -> None:
        row = node.rows.pop(uuid)
        node.vanished.pop(uuid, None)
        device = self._devices[row]
        if device is not None and device.mig is not None:
            place = (device.mig.parent, device.mig.gpu_instance)
            if node.instances.get(place) == uuid:
                del node.instances[place]
        self._devices[row] = None
        self.columns.free(row)
        self._moved(node)

    def _moved(self, node: NodeTelemetry) -> None:
        self.layout += 1
        node.layout = self.layout

    @staticmethod
    def _new_xids(node: NodeTelemetry, sample: Sample, now: float) -> list[HeardXid]:
        found = [
            HeardXid(d.uuid, x, now - max(0, sample.sent_ns - x.at_ns) / 1e9)
            for d in sample.devices
            for x in d.xids
            if x.serial > node.serial
        ]
        if found:
            node.serial = max(h.xid.serial for h in found)
        return found


def instance_uuid(parent: str, gpu_instance: int) -> str:
    """What a source calls a MIG device of which it knows only parent and GPU instance."""
    return f"{parent}/gi/{gpu_instance}"


def _contradicts_itself(sample: Sample) -> bool:
    if sample.read_ns > sample.sent_ns:
        return True
    uuids = {d.uuid for d in sample.devices}
    return len(uuids) < len(sample.devices) or any(_overfull(d) for d in sample.devices)


def _overfull(device: Device) -> bool:
    r = device.readings
    total, used = r.memory_total, r.memory_used
    if isinstance(total, Absence) or isinstance(used, Absence):
        return False
    return used > total


def _numbers(devices: Iterable[Device]) -> tuple[Floats, Codes]:
    flat = [
        v if v.__class__ is int else _ABSENT[v] for d in devices for v in msgspec.structs.astuple(d.readings)
    ]
    values = np.array(flat, dtype=np.float64).reshape(-1, len(READINGS))
    cells = np.full(values.shape, Cell.VALUE, dtype=np.uint8)
    absent = values < 0
    if absent.any():
        cells[absent] = -values[absent]
        values[absent] = 0.0
    return values, cells
