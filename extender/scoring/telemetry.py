"""Judge `telemetry`: idle, roomy, cool, unthrottled and sound devices, among those predicted.

Five terms a device, each 0..1 with 1 best, weighed by `TERMS`:

idle         1 - busy share: the greater of the latest and the smoothed utilisation, raised by the load of
             pods that were placed so lately that it does not show yet
room         share of the memory that nobody uses
cool         from 1 at 30 degrees to 0 at the policy's `temperatureC`, smoothed
unthrottled  0 while the hardware slows the clocks down: thermal, power brake or other slowdown
sound        0 when the count of correctable memory errors has just risen, back to 1 after `eccQuietHours`

Smoothed is an EWMA whose half-life is the store's (60 s by default). What is not known counts as the median
of the fleet's fresh devices, 0.5 if there are none: neither idle nor overloaded. A stale value counts half,
the other half is that median. A node is as good as the worst device that the pod would get there. With
nothing known of any predicted device the judge abstains.
The terms of all devices are worked out at most once a second.
Never: a veto, or a word about devices that the pod would not get.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from extender.inventory.devices import Int32
from extender.inventory.outlook import Lookout, Outlook
from extender.inventory.placements import Placements
from extender.inventory.snapshot import Snapshot
from extender.inventory.telemetry_columns import Columns, Freshness
from extender.model.device import DeviceID
from extender.scoring.candidates import Candidates, Evidence, Float64
from extender.scoring.thresholds import COOL_C, Thresholds

UInt8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]

TERMS: Final = {"idle": 3.0, "room": 2.0, "cool": 2.0, "unthrottled": 2.0, "sound": 1.0}
"""Weight by term."""
SLOWED: Final = 8 | 32 | 64 | 128
"""nvmlClocksEventReason*: HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown."""

_WEIGHTS: Final = np.array(list(TERMS.values())) / sum(TERMS.values())
_MAX_AGE: Final = 1.0
_HALF_LIVES: Final = 4.0  # a placement counts for so many
_NEUTRAL: Final = 0.5


@dataclass(frozen=True, eq=False, slots=True)
class _Marks:
    """Of all devices: `terms` float64[5, rows] with the unknown filled in, `score` float64[rows], `known`."""

    rows: Int32  # the join that it belongs to
    thresholds: Thresholds
    at: float
    terms: Float64
    score: Float64
    known: Bool


class Telemetry:
    """Better devices are better."""

    name = "telemetry"

    def __init__(self, lookout: Lookout, placements: Placements) -> None:
        self._lookout = lookout
        self._placements = placements
        self._marks: _Marks | None = None

    def judge(self, candidates: Candidates, snapshot: Snapshot, now: float) -> tuple[Float64, Evidence]:
        """Score by the worst predicted device of each candidate."""
        abstained = np.full(len(candidates.slots), np.nan)
        if not candidates.asks_for_devices or not len(self._lookout.store):
            return abstained, lambda _: "nothing is known of any device"
        outlook = self._lookout.look(snapshot.topology, now)
        marks = self._look(outlook, candidates.thresholds, now)
        slots, rows = candidates.devices()
        if not marks.known[rows].any():
            return abstained, lambda _: "nothing is known of the predicted devices"
        idle, score = marks.terms[0, rows], marks.score[rows]
        expected = self._expected(candidates, outlook, now)
        if expected is not None:
            load = expected[0][rows] + expected[1][slots]
            score = score - _WEIGHTS[0] * np.minimum(load, idle)
        unknown = float(_WEIGHTS @ _neutral(marks))
        by_slot = np.full(len(outlook.topology.names), np.inf)
        np.minimum.at(by_slot, slots, score)
        known = np.where(candidates.slots >= 0, by_slot[np.maximum(candidates.slots, 0)], np.inf)
        scores = np.where(np.isinf(known), unknown, known)

        def evidence(index: int) -> str:
            return self._evidence(candidates, outlook, marks, index, now=now, expected=expected)

        return np.clip(scores, 0.0, 1.0), evidence

    # ---- all devices

    def _look(self, outlook: Outlook, thresholds: Thresholds, now: float) -> _Marks:
        kept = self._marks
        if (
            kept is not None
            and kept.rows is outlook.rows
            and kept.thresholds == thresholds
            and 0 <= now - kept.at < _MAX_AGE
        ):
            return kept
        joined = np.nonzero(outlook.rows >= 0)[0]
        values, states = _terms(
            self._lookout.store.columns, outlook.rows[joined], outlook.gpus[joined], thresholds, now
        )
        neutral = np.array([_median(v[s == Freshness.FRESH]) for v, s in zip(values, states, strict=True)])
        filled = np.where(states <= Freshness.STALE, values, neutral[:, None])
        filled = np.where(states == Freshness.STALE, (filled + neutral[:, None]) / 2, filled)
        terms = np.repeat(neutral[:, None], len(outlook.rows) + 1, axis=1)  # the last: of nobody
        terms[:, joined] = filled
        known = np.zeros(len(outlook.rows), np.bool_)
        known[joined] = (states <= Freshness.STALE).any(axis=0)
        self._marks = _Marks(outlook.rows, thresholds, now, terms, _WEIGHTS @ terms, known)
        return self._marks

    def _expected(
        self, candidates: Candidates, outlook: Outlook, now: float
    ) -> tuple[Float64, Float64] | None:
        """Load that does not show yet, by device row and, spread over a node's devices, by slot.

        A pod counts as one whole busy device on each of its devices, halved with each half-life.
        """
        half_life = self._lookout.store.ages.half_life_s
        topology = outlook.topology
        placed = [(uid, held.node, held.rows, held.at) for uid, held in candidates.assumed]
        known = {uid for uid, _ in candidates.assumed}
        placed += (
            (each.uid, each.node, _rows(outlook, each.devices), each.at)
            for each in self._placements.since(now - _HALF_LIVES * half_life)
            if each.uid not in known
        )
        if not placed:
            return None
        by_row, by_slot = np.zeros(len(outlook.rows)), np.zeros(len(topology.names))
        for _, node, rows, at in placed:
            share = 2.0 ** (-max(0.0, now - at) / half_life)
            slot = topology.slot_of.get(node)
            if slot is not None and (devices := len(outlook.of_slot(slot))):
                by_slot[slot] += share * len(rows) / devices
            by_row[[row for row in rows if row < len(by_row)]] += share
        return by_row, by_slot

    # ---- words

    def _evidence(
        self,
        candidates: Candidates,
        outlook: Outlook,
        marks: _Marks,
        index: int,
        *,
        now: float,
        expected: tuple[Float64, Float64] | None,
    ) -> str:
        rows = list(dict.fromkeys(candidates.rows(index)))
        if not rows:
            return "no device is predicted: as the median device"
        worst = min(rows, key=lambda row: float(marks.score[row]))
        words = list(self._said(outlook, worst, candidates.thresholds, now))
        if expected is not None:
            load = float(expected[0][worst] + expected[1][candidates.slots[index]])
            words.append(f"{load:.0%} more expected of pods just placed")
        more = f" (worst of {len(rows)})" if len(rows) > 1 else ""
        return f"{outlook.topology.table.ids[worst].device}{more}: {', '.join(words)}"

    def _said(self, outlook: Outlook, row: int, thresholds: Thresholds, now: float) -> Iterator[str]:
        at = slice(row, row + 1)
        values, states = _terms(
            self._lookout.store.columns, outlook.rows[at], outlook.gpus[at], thresholds, now
        )
        for name, value, state in zip(TERMS, values[:, 0], states[:, 0], strict=True):
            fresh = Freshness(int(state))
            number = f" {value:.2f}" if fresh <= Freshness.STALE else ""
            yield f"{name}{number} {fresh.name.lower()}"


def _terms(
    columns: Columns, own: Int32, gpus: Int32, thresholds: Thresholds, now: float
) -> tuple[Float64, UInt8]:
    """Values (0 where unknown) and states of the five terms, [5, n] each, for telemetry's rows.

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
    quiet = (now - columns.errors_rose_at(gpus)) / (thresholds.eccQuietHours * 3600.0)
    values = np.clip(np.stack([1.0 - busy, free, cool, 1.0 - slowed, quiet]), 0.0, 1.0)
    states = np.stack(
        [busy_state, np.maximum(total_state, used_state), warm_state, bits_state, errors_state]
    ).astype(np.uint8)
    return np.where(states <= Freshness.STALE, values, 0.0), states


def _median(known: Float64) -> float:
    return float(np.median(known)) if len(known) else _NEUTRAL


def _neutral(marks: _Marks) -> Float64:
    return marks.terms[:, -1]


def _rows(outlook: Outlook, devices: tuple[DeviceID, ...]) -> tuple[int, ...]:
    found = (outlook.topology.table.row_of.get(device) for device in devices)
    return tuple(row for row in found if row is not None)
