"""When readings have moved far enough to be sent ahead of the heartbeat. A pure function of two lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extender.api.telemetry import READINGS, Absence, Device, Process
from extender.telemetry.agent.settings import ChangeBounds

# HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown: the throttling that hurts.
_HARMFUL_THROTTLE: Final = 8 | 32 | 64 | 128
_IGNORED: Final = frozenset({"clock_sm", "clock_memory", "numa_node"})


def changed(before: Sequence[Device], after: Sequence[Device], bounds: ChangeBounds) -> bool:
    """True when devices, their states, a counter or a reading beyond its bound differ."""
    if len(before) != len(after):
        return True
    return any(_device_changed(old, new, bounds) for old, new in zip(before, after, strict=True))


def _device_changed(old: Device, new: Device, bounds: ChangeBounds) -> bool:
    return (
        (old.uuid, old.state, old.mig, old.nvlinks, old.fabric)
        != (new.uuid, new.state, new.mig, new.nvlinks, new.fabric)
        or _holders(old.processes) != _holders(new.processes)
        or any(
            _reading_changed(name, getattr(old.readings, name), getattr(new.readings, name), bounds)
            for name in READINGS
            if name not in _IGNORED
        )
    )


def _holders(processes: tuple[Process, ...] | Absence) -> object:
    return processes if isinstance(processes, Absence) else {p.pod_uid or p.pid for p in processes}


def _reading_changed(name: str, old: int | Absence, new: int | Absence, bounds: ChangeBounds) -> bool:
    if isinstance(old, Absence) or isinstance(new, Absence):
        return old is not new
    match name:
        case "throttle":
            return bool((old ^ new) & _HARMFUL_THROTTLE)
        case "memory_used" | "memory_reserved":
            bound = bounds.memory_bytes
        case "utilisation_gpu" | "utilisation_memory":
            bound = bounds.utilisation_percent
        case "temperature":
            bound = bounds.temperature_celsius
        case "power" | "power_limit":
            bound = bounds.power_milliwatts
        case _:
            bound = 0
    return abs(old - new) > bound
