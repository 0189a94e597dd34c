"""Load that does not show in telemetry yet: of pods placed a short while ago, or offered their node.

A pod counts as one busy device on each of its own devices, and as much spread over all devices of its node.
Of a pod that was placed, half of that counts after each half-life of the smoothing. Load makes a device less
idle, never less than not at all.
Never: a pod's real load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from extender.inventory.devices import Int32
from extender.inventory.inflight import Assumption
from extender.inventory.placements import Placements
from extender.inventory.topology import Topology
from extender.scoring.marks import MAX_AGE, WEIGHTS, Float32, Marks
from extender.scoring.terms import IDLE

_NOTHING: Final = 1e-3  # of a device: load that counts no more


class _Busy:
    """Load by device, `rows` float32[rows]: of its own pods, and its part of what is on its node."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.rows: Float32 = np.zeros(topology.rows, np.float32)

    def add(self, node: str, rows: Iterable[int], share: float) -> Sequence[Sequence[int] | Int32]:
        """A pod's devices on a node, `share` of a pod; the devices whose load has changed."""
        slot = self._topology.slot_of.get(node)
        if slot is None:
            return ()
        own = self._topology.devices_of(slot)
        known = [row for row in rows if row < len(self.rows)]
        self.rows[own] += share * len(known) / max(len(own), 1)
        for row in known:
            self.rows[row] += share
        return own, known

    def decay(self, share: float) -> None:
        """So much of it is left."""
        self.rows *= np.float32(share)
        self.rows[self.rows < _NOTHING] = 0.0


class Load:
    """The marks' scores less the load. A look works out again those nodes only whose load has changed."""

    def __init__(self, placements: Placements, half_life: float) -> None:
        self._placements = placements
        self._half_life = half_life
        self._topology: Topology | None = None
        self._placed: _Busy
        self._offered: _Busy
        self._at = 0.0  # to when `_placed` is decayed
        self._seen = 0  # placements
        self._expected: dict[str, Assumption] = {}
        self._version = 0  # of the marks under `_scores`
        self._scores: Float32 = np.zeros(0, np.float32)

    def look(
        self, topology: Topology, marks: Marks, assumed: Sequence[tuple[str, Assumption]], now: float
    ) -> Float32:
        """The scores of `marks` less the load of now, float32[rows + 1]; of this moment only.

        `assumed`: by UID, pods that were offered their node seconds ago: nothing of them shows.
        """
        anew = self._carry(topology, now) or self._decay(now) or self._version != marks.version
        if anew:
            self._offered, self._expected = _Busy(topology), {}  # no rounding errors pile up
        busier = [*self._place(topology), *self._expect(dict(assumed))]
        if anew:
            self._version = marks.version
            load = self._placed.rows + self._offered.rows
            self._scores = marks.score.copy()
            self._scores[:-1] -= WEIGHTS[IDLE] * np.minimum(load, marks.terms[IDLE])
        elif busier:
            rows = np.concatenate(busier, dtype=np.intp)
            load = self._placed.rows[rows] + self._offered.rows[rows]
            less = WEIGHTS[IDLE] * np.minimum(load, marks.terms[IDLE][rows])
            self._scores[rows] = marks.score[rows] - less
        return self._scores

    def of(self, row: int) -> float:
        """What a device carried at the last look, in devices."""
        return float(self._placed.rows[row] + self._offered.rows[row])

    @property
    def any(self) -> bool:
        """Whether there was any at the last look."""
        return self._seen > 0 or bool(self._expected)

    def _carry(self, topology: Topology, now: float) -> bool:
        """Begin anew with another fleet, or when the clock went back."""
        last, self._topology = self._topology, topology
        if (
            last is not None
            and last.table is topology.table
            and last.order is topology.order
            and last.slot_of is topology.slot_of
            and last.rows == topology.rows
            and now >= self._at
        ):
            return False
        self._placed, self._at, self._seen = _Busy(topology), now, 0
        return True

    def _decay(self, now: float) -> bool:
        if now - self._at < MAX_AGE:
            return False
        self._placed.decay(2.0 ** ((self._at - now) / self._half_life))
        self._at = now
        return True

    def _place(self, topology: Topology) -> Iterator[Sequence[int] | Int32]:
        """Count new placements; the devices whose load has changed."""
        row_of = topology.table.row_of
        for placed in self._placements.after(self._seen):
            rows = [row for row in map(row_of.get, placed.devices) if row is not None]
            share = 2.0 ** ((placed.at - self._at) / self._half_life)
            yield from self._placed.add(placed.node, rows, share)
        self._seen = self._placements.count

    def _expect(self, expected: dict[str, Assumption]) -> Iterator[Sequence[int] | Int32]:
        """Count what is assumed now and was not, and no more what was; the devices whose load has changed."""
        before, self._expected = self._expected, expected
        for uid, held in before.items():
            if expected.get(uid) is not held:
                yield from self._offered.add(held.node, held.rows, -1.0)
        for uid, held in expected.items():
            if before.get(uid) is not held:
                yield from self._offered.add(held.node, held.rows, 1.0)
