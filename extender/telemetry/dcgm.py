"""What dcgm-exporter's metrics say, as devices with readings. Pure; for scrapes and for Prometheus alike.

Both spellings of labels, sentinel values of old versions, rows of MIG instances, and a gauge that keeps the
last XID for ever. A series that is not there is a reading that is not known, never a zero.
Never: HTTP.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.api.telemetry import READINGS, Absence, Device, Mig, Readings, Xid, normal_pci
from extender.inventory.telemetry import instance_uuid
from extender.telemetry.exposition import Series
from extender.telemetry.sound import sound

PREFIX: Final = "DCGM_"
_MIB: Final = 1 << 20
_UUID_LABELS: Final = ("UUID", "uuid", "gpu_uuid")
_MODEL_LABELS: Final = ("modelName", "model_name")
NODE_LABELS: Final = ("node", "Hostname", "hostname", "exported_Hostname", "exported_hostname")
_DEVICE_FILE: Final = re.compile(r"nvidia(\d+)")
# "Blank" values that old versions print: not found, not supported, not permitted (go-dcgm const.go).
_BLANKS: Final = (
    (2147483632.0, 2147483647.0),
    (140737488355328.0, 140737488355335.0),
    (9.2233720368547e18, math.inf),
)

_SM_CLOCK, _MEM_CLOCK = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK"
_XID_GAUGE, _XID_COUNT = "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT"
_ENERGY: Final = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_USED, _FREE, _RESERVED = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"
_TOTAL, _ENGINE, _DRAM = "DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"

# Of the whole GPU, whichever row repeats them: metric, reading, factor to our unit.
_OF_GPU: Final[Mapping[str, tuple[str, float]]] = {
    "DCGM_FI_DEV_GPU_TEMP": ("temperature", 1),
    "DCGM_FI_DEV_POWER_USAGE": ("power", 1000),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit", 1000),
    _SM_CLOCK: ("clock_sm", 1),
    _MEM_CLOCK: ("clock_memory", 1),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("throttle", 1),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("throttle", 1),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("ecc_corrected_volatile", 1),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected_volatile", 1),
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": ("ecc_corrected_aggregate", 1),
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": ("ecc_uncorrected_aggregate", 1),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("remap_correctable", 1),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("remap_uncorrectable", 1),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": ("remap_pending", 1),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("remap_failure", 1),
}
# Of the whole GPU when its row is the GPU's: on a MIG instance's row they are absent or 0, and mean nothing.
_OF_PLAIN_GPU: Final[Mapping[str, tuple[str, float]]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilisation_gpu", 1),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("utilisation_memory", 1),
}
# Of the row's own device, GPU or instance.
_OF_ROW: Final[Mapping[str, tuple[str, float]]] = {
    _USED: ("memory_used", _MIB),
    _RESERVED: ("memory_reserved", _MIB),
    _TOTAL: ("memory_total", _MIB),
}


def first_label(labels: Mapping[str, str], names: Iterable[str]) -> str:
    """The first of these labels that is there and not empty."""
    for name in names:
        value = labels.get(name)
        if value:
            return value
    return ""


def is_blank(value: float) -> bool:
    """NaN, negative, or one of DCGM's values for "there is none"."""
    return math.isnan(value) or value < 0 or any(low <= value <= high for low, high in _BLANKS)


@dataclass(slots=True)
class _Row:
    labels: Mapping[str, str]
    gpu: str
    instance: int | None
    values: dict[str, float] = field(default_factory=dict)
    raw: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Memory:
    """What must be remembered of one GPU between two texts."""

    xid: float | None = None
    counts: dict[int, float] = field(default_factory=dict)
    energy: float = -1.0
    energy_at: float = 0.0


class DcgmReader:
    """Turns the series of one node's exporter into devices; remembers what turns gauges into events."""

    def __init__(self, frozen_after_s: float) -> None:
        self._frozen_after = frozen_after_s
        self._memory: dict[str, _Memory] = {}
        self.frozen = 0  # GPUs left out of the last text because their energy counter stands still

    def read(self, series: Iterable[Series], now: float) -> list[Device]:
        """All devices of one node's text. Unknown readings are `ERROR`; XIDs are those that are new."""
        rows = _rows(series)
        gpus = {row.gpu for row in rows.values()}
        self._memory = {uuid: self._memory.get(uuid, _Memory()) for uuid in gpus}
        stuck = {uuid for uuid in gpus if self._stands_still(uuid, rows, now)}
        self.frozen = len(stuck)
        events = {uuid: self._new_xids(uuid, rows) for uuid in gpus}
        devices = [_device(row, events) for row in rows.values() if row.gpu not in stuck]
        whole = {row.gpu for row in rows.values() if row.instance is None}
        for uuid in gpus - whole - stuck:  # a GPU of which only instances have rows
            first = next(row for row in rows.values() if row.gpu == uuid)
            devices.append(_device(_Row(first.labels, uuid, None, _shared(uuid, rows)), events))
        return devices

    def _stands_still(self, uuid: str, rows: Mapping[tuple[str, int | None], _Row], now: float) -> bool:
        """A GPU always uses energy: when its counter stands still, the exporter repeats what it once knew."""
        energy = next((r.raw[_ENERGY] for r in rows.values() if r.gpu == uuid and _ENERGY in r.raw), None)
        memory = self._memory[uuid]
        if energy is None or energy != memory.energy:
            memory.energy, memory.energy_at = -1.0 if energy is None else energy, now
            return False
        return now - memory.energy_at > self._frozen_after

    def _new_xids(self, uuid: str, rows: Mapping[tuple[str, int | None], _Row]) -> tuple[Xid, ...]:
        memory = self._memory[uuid]
        found: list[int] = []
        gauges = [r.raw[_XID_GAUGE] for r in rows.values() if r.gpu == uuid and _XID_GAUGE in r.raw]
        if gauges:
            last = gauges[0]
            if memory.xid is not None and last not in {0.0, memory.xid}:
                found.append(int(last))  # at first sight it may be days old: no event
            memory.xid = last
        counts: dict[int, float] = {}
        for row in rows.values():
            if row.gpu == uuid:
                counts |= {
                    int(k[len(_XID_COUNT) :]): v for k, v in row.raw.items() if k.startswith(_XID_COUNT)
                }
        for code, count in counts.items():
            if count > memory.counts.get(code, 0.0) and code not in found:
                found.append(code)
        memory.counts = counts
        return tuple(Xid(serial=0, code=code, at_ns=0) for code in found if code > 0)


def _rows(series: Iterable[Series]) -> dict[tuple[str, int | None], _Row]:
    rows: dict[tuple[str, int | None], _Row] = {}
    for name, labels, value in series:
        gpu = first_label(labels, _UUID_LABELS)
        if not gpu or is_blank(value):
            continue
        text = labels.get("GPU_I_ID", "")
        instance = int(text) if text.isdecimal() else None
        row = rows.get((gpu, instance))
        if row is None:
            row = rows[gpu, instance] = _Row(labels, gpu, instance)
        if name == _XID_COUNT:
            if labels.get("xid", "").isdecimal():
                row.raw[_XID_COUNT + labels["xid"]] = value
            continue
        row.raw[name] = value  # a time-sliced GPU repeats it for each pod
        table = _OF_GPU if instance is not None else {**_OF_GPU, **_OF_PLAIN_GPU}
        reading = table.get(name) or _OF_ROW.get(name)
        if reading is not None:
            row.values[reading[0]] = value * reading[1]
    for row in rows.values():
        _derive(row)
    return rows


def _derive(row: _Row) -> None:
    raw, values = row.raw, row.values
    if "memory_total" not in values and {_USED, _FREE, _RESERVED} <= raw.keys():
        values["memory_total"] = (raw[_USED] + raw[_FREE] + raw[_RESERVED]) * _MIB
    for metric, reading in ((_ENGINE, "utilisation_gpu"), (_DRAM, "utilisation_memory")):
        if reading not in values and metric in raw:
            values[reading] = 100.0 * raw[metric]


_GPU_WIDE: Final = frozenset(reading for reading, _ in _OF_GPU.values())


def _shared(uuid: str, rows: Mapping[tuple[str, int | None], _Row]) -> dict[str, float]:
    shared: dict[str, float] = {}
    for row in rows.values():
        if row.gpu == uuid:
            shared |= {k: v for k, v in row.values.items() if k in _GPU_WIDE}
    return shared


def _device(row: _Row, events: Mapping[str, tuple[Xid, ...]]) -> Device:
    own = row.values
    if row.instance is not None:
        own = {k: v for k, v in own.items() if k not in _GPU_WIDE}
    readings = Readings(**{k: round(own[k]) if k in own else Absence.ERROR for k in READINGS})
    number = _DEVICE_FILE.fullmatch(row.labels.get("device", ""))
    whole = row.instance is None
    return Device(
        uuid=row.gpu if row.instance is None else instance_uuid(row.gpu, row.instance),
        minor=int(number[1]) if number else Absence.UNSUPPORTED,
        name=first_label(row.labels, _MODEL_LABELS)[:256],
        pci=normal_pci(row.labels.get("pci_bus_id", "")),
        mig=None if row.instance is None else Mig(parent=row.gpu, gpu_instance=row.instance),
        readings=sound(readings),
        xids=events.get(row.gpu, ()) if whole else (),
    )
