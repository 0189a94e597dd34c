"""Judge `telemetry`: idle, roomy, cool, unthrottled and sound devices, among those predicted.

A device is as good as its mark (marks.py), less the load that does not show yet (load.py). A node is as good
as the worst device that the pod would get there; one where no device is predicted counts as a device of which
nothing is known. With nothing known of any device the judge abstains.
Never: a veto, or a word about devices that the pod would not get.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from extender.inventory.outlook import Lookout, Outlook
from extender.inventory.placements import Placements
from extender.inventory.snapshot import Snapshot
from extender.inventory.telemetry_columns import Freshness
from extender.scoring.candidates import Candidates, Evidence, Float64
from extender.scoring.load import Load
from extender.scoring.marks import Marks
from extender.scoring.terms import TERMS, terms_of
from extender.scoring.thresholds import Thresholds


class Telemetry:
    """Better devices are better."""

    name = "telemetry"

    def __init__(self, lookout: Lookout, placements: Placements) -> None:
        self._lookout = lookout
        self._marks = Marks(lookout.store.columns)
        self._load = Load(placements, lookout.store.ages.half_life_s)

    def judge(self, candidates: Candidates, snapshot: Snapshot, now: float) -> tuple[Float64, Evidence]:
        """Score by the worst predicted device of each candidate. The evidence is of this moment only."""
        if not candidates.asks_for_devices or not len(self._lookout.store):
            return _abstained(candidates)
        outlook, marks = self._lookout.look(snapshot.topology, now), self._marks
        marks.look(outlook, candidates.thresholds, now)
        if not marks.anything:
            return _abstained(candidates)
        scores = self._load.look(snapshot.topology, marks, candidates.assumed, now)
        least = np.full(len(snapshot.topology.names) + 1, np.inf, np.float32)  # the last: no known node
        for rows in candidates.devices():
            np.minimum(least[:-1], scores[rows], out=least[:-1])
        judged: Float64 = least[candidates.slots].astype(np.float64)
        # A pod that has all that it asks for gets no device, though the node is predicted.
        judged[~(candidates.predicted & (judged < np.inf))] = marks.neutral
        return judged, lambda index: self._evidence(candidates, outlook, index, now)

    # ---- words

    def _evidence(self, candidates: Candidates, outlook: Outlook, index: int, now: float) -> str:
        rows = list(dict.fromkeys(candidates.rows(index)))
        if not rows:
            return "no device is predicted: as the median device"
        worst = min(rows, key=lambda row: float(self._marks.score[row]))
        words = list(self._said(outlook, worst, candidates.thresholds, now))
        self._load.look(outlook.topology, self._marks, candidates.assumed, now)
        if self._load.any:
            words.append(f"{self._load.of(worst):.0%} more load expected of pods just placed")
        more = f" (worst of {len(rows)})" if len(rows) > 1 else ""
        return f"{outlook.topology.table.ids[worst].device}{more}: {', '.join(words)}"

    def _said(self, outlook: Outlook, row: int, thresholds: Thresholds, now: float) -> Iterator[str]:
        at = slice(row, row + 1)
        columns = self._lookout.store.columns
        values, states = terms_of(columns, outlook.rows[at], outlook.gpus[at], thresholds, now)
        for name, value, state in zip(TERMS, values[:, 0], states[:, 0], strict=True):
            fresh = Freshness(int(state))
            number = f" {value:.2f}" if fresh <= Freshness.STALE else ""
            yield f"{name}{number} {fresh.name.lower()}"


def _abstained(candidates: Candidates) -> tuple[Float64, Evidence]:
    return np.full(len(candidates.slots), np.nan), lambda _: "nothing is known of any device"
