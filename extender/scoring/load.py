"""Load that does not show in telemetry yet: of pods placed a short while ago, or offered their node.

A pod counts as one busy device on each of its own devices, and as much spread over all devices of its node.
Of a pod that was placed, half of that counts after each half-life of the smoothing. Load makes a device less
idle, never less than not at all. Devices of no node's own pools, unknown to telemetry, carry none.
Never: a pod's real load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from extender.inventory.devices import Int32
from extender.inventory.inflight import Assumption
from extender.inventory.outlook import Outlook
from extender.inventory.placements import Placements
from extender.inventory.topology import Topology
from extender.scoring.marks import MAX_AGE, WEIGHTS, Float32, Marks
from extender.scoring.terms import IDLE

_NOTHING: Final = 1e-3  # of a device: load that counts no more


class _Busy:
    """How many devices are or will be busy: `rows` float32[rows] by device, `nodes` float32[slots] in all."""

    def __init__(self, topology: Topology) -> None:
        self.slot_of = topology.slot_of
        self.rows: Float32 = np.zeros(topology.rows, np.float32)
        self.nodes: Float32 = np.zeros(len(topology.names), np.float32)

    def add(self, node: str, rows: Iterable[int], share: float) -> int:
        """A pod's devices, `share` of a pod; the node's slot, -1 for one that is not known."""
        slot = self.slot_of.get(node, -1)
        for row in rows if slot >= 0 else ():
            if row < len(self.rows):
                self.rows[row] += share
                self.nodes[slot] += share
        return slot

    def decay(self, share: float) -> None:
        """So much of it is left."""
        for load in (self.rows, self.nodes):
            np.multiply(load, np.float32(share), out=load)
            load[load < _NOTHING] = 0.0


class Load:
    """The marks' scores less the load. Each look works out again those nodes only whose load changed."""

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
        self, outlook: Outlook, marks: Marks, assumed: Sequence[tuple[str, Assumption]], now: float
    ) -> Float32:
        """The scores of `marks` less the load of now, float32[rows + 1]; of this moment only.

        `assumed`: by UID, pods that were offered their node seconds ago: nothing of them shows.
        """
        anew = self._carry(outlook.topology, now)
        if now - self._at >= MAX_AGE:
            self._placed.decay(2.0 ** ((self._at - now) / self._half_life))
            self._at, anew = now, True
        busier = self._place(outlook) | self._expect(dict(assumed))
        if anew or self._version != marks.version:
            self._version = marks.version
            self._scores = marks.score.copy()
            self._take_off(np.arange(len(self._placed.nodes), dtype=np.int32), marks)
        elif busier:
            self._take_off(np.array([slot for slot in busier if slot >= 0], np.int32), marks)
        return self._scores

    def of(self, row: int, slot: int) -> float:
        """What device `row` on node `slot` carried at the last look, in devices."""
        assert self._topology is not None
        starts = self._topology.starts
        devices = max(int(starts[slot + 1] - starts[slot]), 1)
        return sum(
            float(busy.rows[row]) + float(busy.nodes[slot]) / devices
            for busy in (self._placed, self._offered)
        )

    @property
    def any(self) -> bool:
        """Whether there was any at the last look."""
        return self._seen > 0 or bool(self._expected)

    def _carry(self, topology: Topology, now: float) -> bool:
        """Go over to another fleet, if it is one; load of placed pods stays where numbers mean the same."""
        last = self._topology
        backwards = now < self._at
        if topology is last and not backwards:
            return False
        placed = _Busy(topology)
        if (
            last is not None
            and last.table is topology.table
            and last.slot_of is topology.slot_of
            and not backwards
        ):
            placed.rows[: last.rows], placed.nodes = self._placed.rows, self._placed.nodes
        else:
            self._at, self._seen = now, 0
        self._topology = topology
        self._placed, self._offered, self._expected = placed, _Busy(topology), {}
        return True

    def _place(self, outlook: Outlook) -> set[int]:
        """Count new placements; the slots of their nodes."""
        row_of = outlook.topology.table.row_of
        slots = set()
        for placed in self._placements.after(self._seen):
            rows = [row for row in map(row_of.get, placed.devices) if row is not None]
            share = 2.0 ** ((placed.at - self._at) / self._half_life)
            slots.add(self._placed.add(placed.node, rows, share))
        self._seen = self._placements.count
        return slots

    def _expect(self, expected: dict[str, Assumption]) -> set[int]:
        """Count what is assumed now and was not, and no more what was; the slots of the nodes."""
        before, self._expected = self._expected, expected
        slots = set()
        for uid, held in before.items():
            if expected.get(uid) is not held:
                slots.add(self._offered.add(held.node, held.rows, -1.0))
        for uid, held in expected.items():
            if before.get(uid) is not held:
                slots.add(self._offered.add(held.node, held.rows, 1.0))
        return slots

    def _take_off(self, slots: Int32, marks: Marks) -> None:
        """Work out the scores of all devices of the nodes again."""
        assert self._topology is not None
        placed, offered, starts = self._placed, self._offered, self._topology.starts
        begins = starts[slots]
        sizes = starts[slots + 1] - begins
        ends = np.cumsum(sizes)
        at = np.repeat(begins - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)
        devices = self._topology.order[at]
        shared = (placed.nodes[slots] + offered.nodes[slots]) / np.maximum(sizes, 1).astype(np.float32)
        load = placed.rows[devices] + offered.rows[devices] + np.repeat(shared, sizes)
        less = WEIGHTS[IDLE] * np.minimum(load, marks.terms[IDLE][devices])
        self._scores[devices] = marks.score[devices] - less
