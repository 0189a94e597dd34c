"""Load that does not show in telemetry yet: of pods placed a short while ago, or offered their node.

A pod counts as one busy device on each of its own devices, and as much spread over all devices of its node;
half of that after each half-life of the smoothing. It makes a device less idle, never less than not at all.
Never: a pod's real load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from extender.inventory.devices import Int32
from extender.inventory.inflight import Assumption
from extender.inventory.outlook import Outlook
from extender.inventory.placements import Placement, Placements
from extender.inventory.topology import Topology
from extender.model.device import DeviceID
from extender.scoring.marks import MAX_AGE, WEIGHTS, Float32, Marks
from extender.scoring.terms import IDLE

_NOTHING = 1e-3  # of a device: load that counts no more


class Load:
    """Load by device and by node, and the marks' scores less it.

    `by_row` float32[rows] and `by_node` float32[slots] count devices that are or will be busy. Devices of no
    node's own pools, of which telemetry knows nothing, carry none.
    """

    def __init__(self, placements: Placements, half_life: float) -> None:
        self._placements = placements
        self._half_life = half_life
        self._topology: Topology | None = None
        self._by_row: Float32 = np.zeros(0, np.float32)
        self._by_node: Float32 = np.zeros(0, np.float32)
        self._at = 0.0
        self._seen = 0  # placements
        self._version = 0  # of the marks under `_scores`
        self._scores: Float32 = np.zeros(0, np.float32)

    @property
    def any(self) -> bool:
        """Whether a pod was ever placed."""
        return self._seen > 0

    def of(self, row: int, slot: int) -> float:
        """What device `row` on node `slot` carries, in devices."""
        assert self._topology is not None
        starts = self._topology.starts
        return float(self._by_row[row] + self._by_node[slot] / max(starts[slot + 1] - starts[slot], 1))

    def look(self, outlook: Outlook, marks: Marks, now: float) -> Float32:
        """The scores of `marks` less the load of now, float32[rows + 1]; to be read at once, not kept."""
        anew = self._carry(outlook.topology, now)
        if now - self._at >= MAX_AGE:
            self._decay(now)
            anew = True
        busier = {self._add(placed.node, _rows(outlook, placed.devices), placed.at) for placed in self._new()}
        self._seen = self._placements.count
        if anew or self._version != marks.version:
            self._version = marks.version
            self._scores = marks.score.copy()
            self._take_off(np.arange(len(self._by_node), dtype=np.int32), marks)
        elif busier:
            self._take_off(np.array([slot for slot in busier if slot >= 0], np.int32), marks)
        return self._scores

    def expect(self, assumed: Sequence[Assumption], marks: Marks) -> Callable[[], None]:
        """Count pods that were offered their node seconds ago, too. Returns what undoes it.

        Undoing costs less than a copy of the load of a whole fleet for each question.
        """
        assert self._topology is not None
        slot_of, size = self._topology.slot_of, len(self._by_row)
        pairs = [(slot_of.get(held.node, -1), row) for held in assumed for row in held.rows if row < size]
        on = np.array([slot for slot, _ in pairs if slot >= 0], np.int32)
        rows = np.array([row for slot, row in pairs if slot >= 0], np.int32)
        nodes = np.unique(on)
        devices = self._devices(nodes)[0]
        before = self._by_row[rows], self._by_node[nodes], self._scores[devices]
        np.add.at(self._by_row, rows, 1.0)
        np.add.at(self._by_node, on, 1.0)
        self._take_off(nodes, marks)

        def undo() -> None:
            self._by_row[rows], self._by_node[nodes], self._scores[devices] = before

        return undo

    def _new(self) -> Sequence[Placement]:
        return tuple(self._placements.after(self._seen))

    def _carry(self, topology: Topology, now: float) -> bool:
        """Go over to another fleet, if it is one; the load stays where rows and slots mean the same."""
        last = self._topology
        if last is topology and now >= self._at:
            return False
        self._topology = topology
        rows, nodes = topology.rows, len(topology.names)
        if (
            last is not None
            and last.table is topology.table
            and last.slot_of is topology.slot_of
            and now >= self._at
        ):
            self._by_row = np.append(self._by_row, np.zeros(rows - len(self._by_row), np.float32))
            return True
        self._by_row, self._by_node = np.zeros(rows, np.float32), np.zeros(nodes, np.float32)
        self._at, self._seen = now, 0
        return True

    def _decay(self, now: float) -> None:
        share = np.float32(2.0 ** ((self._at - now) / self._half_life))
        self._by_row *= share
        self._by_node *= share
        self._by_row[self._by_row < _NOTHING] = 0.0
        self._by_node[self._by_node < _NOTHING] = 0.0
        self._at = now

    def _add(self, node: str, rows: Sequence[int], placed_at: float) -> int:
        """A pod was placed; its slot, -1 if that is not known."""
        assert self._topology is not None
        slot = self._topology.slot_of.get(node, -1)
        share = 2.0 ** ((placed_at - self._at) / self._half_life)
        for row in rows if slot >= 0 else ():
            if row < len(self._by_row):
                self._by_row[row] += share
                self._by_node[slot] += share
        return slot

    def _take_off(self, slots: Int32, marks: Marks) -> None:
        """Work out the scores of all devices of the nodes again."""
        devices, sizes = self._devices(slots)
        shared = self._by_node[slots] / np.maximum(sizes, 1).astype(np.float32)
        load = self._by_row[devices] + np.repeat(shared, sizes)
        idle = marks.terms[IDLE][devices]
        self._scores[devices] = marks.score[devices] - WEIGHTS[IDLE] * np.minimum(load, idle)

    def _devices(self, slots: Int32) -> tuple[Int32, Int32]:
        """Rows of all devices of the nodes, node by node, and how many each has."""
        assert self._topology is not None
        starts = self._topology.starts
        sizes = starts[slots + 1] - starts[slots]
        at = np.repeat(starts[slots] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        return self._topology.order[at], sizes


def _rows(outlook: Outlook, devices: Sequence[DeviceID]) -> list[int]:
    found = (outlook.topology.table.row_of.get(device) for device in devices)
    return [row for row in found if row is not None]
