"""Which devices are taken, as columns beside the device table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from extender.inventory.claims import Holding
from extender.inventory.devices import DeviceTable, Int32
from extender.inventory.sharedmap import SharedMap
from extender.model.device import DeviceID

Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """bool[rows] each, never written to: held whole by a claim; held in shares by at least one."""

    taken: Bool
    shared: Bool


class OccupancyColumns:
    """Writer of the columns: a view that was handed out is left alone, the next write copies."""

    def __init__(self) -> None:
        self._taken: Bool = np.zeros(64, np.bool_)
        self._shared: Bool = np.zeros(64, np.bool_)
        self._view: Occupancy | None = None
        self._rows = 0

    def update(
        self,
        table: DeviceTable,
        devices: Iterable[DeviceID],
        holders: SharedMap[DeviceID, tuple[Holding, ...]],
    ) -> None:
        """Read the holders of `devices` again; those without a row are nobody's candidates and left out."""
        self._own(len(table))
        for device in devices:
            row = table.row_of.get(device)
            if row is not None:
                held = holders.get(device)
                if not held:
                    self._taken[row] = self._shared[row] = False
                    continue
                self._taken[row] = any(holding.share_id is None for holding in held)
                self._shared[row] = any(holding.share_id is not None for holding in held)

    def renumber(self, kept: Int32) -> None:
        """The table was compacted: row `kept[i]` is row i now."""
        self._own(0)
        self._taken, self._shared, self._view = self._taken[kept], self._shared[kept], None

    def view(self, rows: int) -> Occupancy:
        """Columns of the first `rows` rows."""
        if self._view is None or self._rows != rows:
            self._own(rows)
            self._rows = rows
            self._view = Occupancy(self._taken[:rows], self._shared[:rows])
            self._view.taken.flags.writeable = False
            self._view.shared.flags.writeable = False
        return self._view

    def _own(self, rows: int) -> None:
        if self._view is None and rows <= len(self._taken):
            return
        size = max(64, len(self._taken))
        while size < rows:
            size *= 2
        taken, shared = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        taken[: len(self._taken)] = self._taken
        shared[: len(self._shared)] = self._shared
        self._taken, self._shared, self._view = taken, shared, None
