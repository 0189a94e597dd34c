"""The five terms by which the judge `telemetry` marks a device, each 0..1 with 1 best, weighed by `TERMS`.

idle         1 - busy share: the greater of the latest and the smoothed utilisation
room         share of the memory that nobody uses
cool         from 1 at 30 degrees to 0 at the policy's `temperatureC`, smoothed
unthrottled  0 while the hardware slows the clocks down: thermal, power brake or other slowdown
sound        0 when the count of correctable memory errors has just risen, back to 1 after `eccQuietHours`

Smoothed is an EWMA whose half-life is the store's (60 s by default).
Never: what is made of a term that is not known.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from extender.inventory.devices import Int32
from extender.inventory.telemetry_columns import Columns, Freshness
from extender.scoring.candidates import Float64
from extender.scoring.thresholds import COOL_C, Thresholds

UInt8 = npt.NDArray[np.uint8]

TERMS: Final = {"idle": 3.0, "room": 2.0, "cool": 2.0, "unthrottled": 2.0, "sound": 1.0}
"""Weight by term."""
IDLE: Final = 0
SLOWED: Final = 8 | 32 | 64 | 128
"""nvmlClocksEventReason*: HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown."""

_OWN: Final = ("utilisation_gpu", "memory_total", "memory_used")
_OF_GPU: Final = ("temperature", "throttle", "ecc_corrected_volatile")


def terms_of(
    columns: Columns, own: Int32, gpus: Int32, thresholds: Thresholds, now: float
) -> tuple[Float64, UInt8]:
    """Values (0 where unknown) and `Freshness` of the terms, [5, n] each, for telemetry's rows int32[n].

    A MIG device has its own memory and load, and the heat, clocks and errors of the GPU under it.
    """
    smooth, busy_state = columns.smoothed("utilisation_gpu", own, now)
    busy = np.maximum(smooth, columns.column("utilisation_gpu", own, now)[0]) / 100.0
    total, total_state = columns.column("memory_total", own, now)
    used, used_state = columns.column("memory_used", own, now)
    reserved, _ = columns.column("memory_reserved", own, now)
    free = np.divide(total - used - reserved, total, out=np.zeros(len(own)), where=total > 0)
    warm, warm_state = columns.smoothed("temperature", gpus, now)
    cool = (thresholds.temperatureC - warm) / (thresholds.temperatureC - COOL_C)
    bits, bits_state = columns.column("throttle", gpus, now)
    slowed = (bits.astype(np.int64) & SLOWED) != 0
    _, errors_state = columns.column("ecc_corrected_volatile", gpus, now)
    quiet = (now - columns.errors_rose_at(gpus)) / _quiet_s(thresholds)
    values = np.clip(np.stack([1.0 - busy, free, cool, 1.0 - slowed, quiet]), 0.0, 1.0)
    states = np.stack([busy_state, np.maximum(total_state, used_state), warm_state, bits_state, errors_state])
    return np.where(states <= Freshness.STALE, values, 0.0), states


def same_until(columns: Columns, own: Int32, gpus: Int32, thresholds: Thresholds, now: float) -> Float64:
    """Until when `terms_of` would say the same of each device if nothing were read, float64[n]."""
    until = np.full(len(own), np.inf)
    for names, rows in ((_OWN, own), (_OF_GPU, gpus)):
        for name in names:
            np.minimum(until, columns.same_until(name, rows, now), out=until)
    until[now - columns.errors_rose_at(gpus) < _quiet_s(thresholds)] = now
    return until


def _quiet_s(thresholds: Thresholds) -> float:
    return thresholds.eccQuietHours * 3600.0
