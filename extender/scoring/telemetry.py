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
the other half is that median. A node is as good as the worst device that the pod would get there; one where
no device is predicted counts as a device of which nothing is known. With nothing known of any device the
judge abstains.
The terms of all devices are worked out at most once a second.
Never: a veto, or a word about devices that the pod would not get.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from extender.inventory.devices import Int32
from extender.inventory.inflight import Assumption
from extender.inventory.outlook import Lookout, Outlook
from extender.inventory.placements import Placements
from extender.inventory.snapshot import Snapshot
from extender.inventory.telemetry_columns import Columns, Freshness
from extender.model.device import DeviceID
from extender.scoring.candidates import Candidates, Evidence, Float64
from extender.scoring.thresholds import COOL_C, Thresholds

UInt8 = npt.NDArray[np.uint8]
Float32 = npt.NDArray[np.float32]

TERMS: Final = {"idle": 3.0, "room": 2.0, "cool": 2.0, "unthrottled": 2.0, "sound": 1.0}
"""Weight by term."""
SLOWED: Final = 8 | 32 | 64 | 128
"""nvmlClocksEventReason*: HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown."""

_WEIGHTS: Final = np.array(list(TERMS.values())) / sum(TERMS.values())
_MAX_AGE: Final = 1.0
_NEUTRAL: Final = 0.5
_NOTHING: Final = 1e-3  # of a device: load that counts no more
_FEW: Final = 2  # devices a node: up to here shifting whole columns is quicker than a reduction by node


class _Load:
    """Load that does not show yet: a pod counts as one busy device on each of its own, halved by half-lives.

    `by_row` float32[rows]; `by_slot` float32[slots]: the same, spread over the devices of the node.
    """

    def __init__(self, outlook: Outlook, half_life: float, now: float) -> None:
        self.outlook = outlook
        self.half_life = half_life
        self.at = now
        self.seen = 0  # placements
        self.by_row = np.zeros(len(outlook.rows), np.float32)
        self.by_slot = np.zeros(len(outlook.topology.names), np.float32)

    def decay(self, now: float) -> None:
        """Go on to `now`."""
        share = 2.0 ** (-max(0.0, now - self.at) / self.half_life)
        self.by_row *= share
        self.by_slot *= share
        self.by_slot[self.by_slot < _NOTHING] = 0.0
        self.at = now

    def add(self, node: str, rows: Iterable[int], placed_at: float) -> None:
        """A pod was placed."""
        share = 2.0 ** (-max(0.0, self.at - placed_at) / self.half_life)
        slot = self.outlook.topology.slot_of.get(node)
        devices = len(self.outlook.of_slot(slot)) if slot is not None else 0
        for row in rows:
            if devices and slot is not None and row < len(self.by_row):
                self.by_row[row] += share
                self.by_slot[slot] += share / devices

    def expect(self, assumed: Sequence[Assumption]) -> Callable[[], None]:
        """Pods that were offered their node seconds ago: nothing of them shows. Returns what undoes it.

        Undoing costs less than a copy of the load of a whole fleet for each question.
        """
        slot_of, size = self.outlook.topology.slot_of, len(self.by_row)
        on = np.array([slot_of.get(held.node, -1) for held in assumed for _ in held.rows], np.int32)
        rows = np.array([row for held in assumed for row in held.rows], np.int32)
        known = (on >= 0) & (rows < size)
        on, rows = on[known], rows[known]
        starts = self.outlook.topology.starts
        before, before_on = self.by_row[rows], self.by_slot[on]
        np.add.at(self.by_row, rows, 1.0)
        np.add.at(self.by_slot, on, 1.0 / np.maximum(starts[on + 1] - starts[on], 1))

        def undo() -> None:
            self.by_row[rows] = before
            self.by_slot[on] = before_on

        return undo

    def take_off(self, score: Float32, slots: Int32, rows: Int32, idle: Float32) -> None:
        """Take the load off the scores (float32[m]) of devices `rows` on nodes `slots`, which are sorted."""
        busy = np.nonzero(self.by_slot)[0]
        begins = np.searchsorted(slots, busy)
        sizes = np.searchsorted(slots, busy, side="right") - begins
        at = np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
        at += np.arange(len(at))
        on = rows[at]
        more = self.by_row[on] + np.repeat(self.by_slot[busy], sizes)
        score[at] -= _WEIGHTS[0] * np.minimum(more, idle[on])


@dataclass(frozen=True, eq=False, slots=True)
class _Marks:
    """Of all devices: `terms` float32[5, rows + 1] with the unknown filled in, `score` float32[rows + 1].

    Single precision, since what an answer costs is touching them. The last of them stands for a device that
    nothing is known of. `anything`: something is known of any.
    """

    rows: Int32  # the join that it belongs to
    thresholds: Thresholds
    at: float
    terms: Float32
    score: Float32
    anything: bool


class Telemetry:
    """Better devices are better."""

    name = "telemetry"

    def __init__(self, lookout: Lookout, placements: Placements) -> None:
        self._lookout = lookout
        self._placements = placements
        self._marks: _Marks | None = None
        self._load: _Load | None = None

    def judge(self, candidates: Candidates, snapshot: Snapshot, now: float) -> tuple[Float64, Evidence]:
        """Score by the worst predicted device of each candidate."""
        abstained = np.full(len(candidates.slots), np.nan)
        if not candidates.asks_for_devices or not len(self._lookout.store):
            return abstained, lambda _: "nothing is known of any device"
        outlook = self._lookout.look(snapshot.topology, now)
        marks = self._look(outlook, candidates.thresholds, now)
        if not marks.anything:
            return abstained, lambda _: "nothing is known of any device"
        slots, rows = candidates.devices()
        if (slots[1:] < slots[:-1]).any():
            order = np.argsort(slots, kind="stable")
            slots, rows = slots[order], rows[order]
        score = marks.score[rows]
        load = self._placed(outlook, now)
        if load.seen or candidates.assumed:
            undo = load.expect([held for _, held in candidates.assumed])
            load.take_off(score, slots, rows, marks.terms[0])
            undo()
        least = _least(score, slots, len(outlook.topology.names))
        # A pod that has all that it asks for gets no device, though the node is predicted.
        known = np.isfinite(scores := least[candidates.slots]) & candidates.predicted
        judged: Float64 = np.where(known, scores, marks.score[-1]).astype(np.float64)

        def evidence(index: int) -> str:
            return self._evidence(candidates, outlook, marks, index, now)

        return judged, evidence

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
        terms = np.repeat(neutral[:, None], len(outlook.rows) + 1, axis=1)
        terms[:, joined] = filled
        anything = bool((states <= Freshness.STALE).any())
        score = (_WEIGHTS @ terms).astype(np.float32)
        self._marks = _Marks(outlook.rows, thresholds, now, terms.astype(np.float32), score, anything)
        return self._marks

    def _placed(self, outlook: Outlook, now: float) -> _Load:
        load = self._load
        if load is None or load.outlook.topology is not outlook.topology or now < load.at:
            load = self._load = _Load(outlook, self._lookout.store.ages.half_life_s, now)
        if now - load.at >= _MAX_AGE:
            load.decay(now)
        for placement in self._placements.after(load.seen):
            load.add(placement.node, _rows(outlook, placement.devices), placement.at)
        load.seen = self._placements.count
        return load

    # ---- words

    def _evidence(
        self, candidates: Candidates, outlook: Outlook, marks: _Marks, index: int, now: float
    ) -> str:
        rows = list(dict.fromkeys(candidates.rows(index)))
        if not rows:
            return "no device is predicted: as the median device"
        worst = min(rows, key=lambda row: float(marks.score[row]))
        words = list(self._said(outlook, worst, candidates.thresholds, now))
        load = self._placed(outlook, now)
        if load.seen or candidates.assumed:
            undo = load.expect([held for _, held in candidates.assumed])
            share = float(load.by_row[worst] + load.by_slot[candidates.slots[index]])
            undo()
            words.append(f"{share:.0%} more load expected of pods just placed")
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


def _least(score: Float32, slots: Int32, size: int) -> Float32:
    """The least score of each slot, float32[size]; inf where there is none. `slots` int32[m] are sorted."""
    least = np.full(size, np.inf, np.float32)
    if not len(slots):
        return least
    begins = np.concatenate([[0], np.flatnonzero(slots[1:] != slots[:-1]) + 1])
    if len(slots) > _FEW * len(begins):
        least[slots[begins]] = np.minimum.reduceat(score, begins)
        return least
    found = score.copy()
    for shift in range(1, len(slots)):
        same = slots[shift:] == slots[:-shift]
        if not same.any():
            break
        lesser = np.minimum(found[:-shift], score[shift:])
        np.copyto(found[:-shift], lesser, where=same)
    least[slots[::-1]] = found[::-1]  # the first of a node is written last: it has seen all others
    return least


def _rows(outlook: Outlook, devices: tuple[DeviceID, ...]) -> tuple[int, ...]:
    found = (outlook.topology.table.row_of.get(device) for device in devices)
    return tuple(row for row in found if row is not None)
