"""How devices are in use: as numbers for whole fleets, and as the allocator's state for single nodes.

Never: what a device is (see `devicecodes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from extender.allocator.quantities import quantity_of
from extender.allocator.state import AllocatedState, Holdings, merged
from extender.api.quantity import Quantity
from extender.inventory.claims import Holding
from extender.inventory.devices import DeviceTable, Int32
from extender.inventory.occupancy import Occupancy
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceID


class DeviceUse:
    """Numbers what shares consume; worked out anew for a device when its holders change."""

    def __init__(self) -> None:
        self._shares: dict[tuple[tuple[str, Quantity], ...], int] = {}
        self._consumption: dict[int, tuple[tuple[Holding, ...], int]] = {}
        self._used: tuple[Occupancy, DeviceTable, frozenset[int], Int32] | None = None

    def __len__(self) -> int:
        return len(self._shares)

    def clear(self) -> None:
        """Forget every number; answers kept by them are worthless then."""
        self._shares.clear()
        self._consumption.clear()
        self._used = None

    def over(self, snapshot: Snapshot, assumed: frozenset[int]) -> Int32:
        """How each device is in use, int32[rows]: bit 0 held whole, the rest numbers what shares consume."""
        table, rows = snapshot.topology.table, snapshot.topology.rows
        kept = self._used
        if (
            kept is not None
            and kept[0] is snapshot.occupancy
            and kept[1] is table
            and kept[2] == assumed
            and len(kept[3]) == rows
        ):
            return kept[3]
        uses = snapshot.occupancy.taken[:rows].astype(np.int32)
        if assumed:
            uses[[row for row in assumed if row < rows]] = 1
        for row in np.nonzero(snapshot.occupancy.shared[:rows])[0].tolist():
            uses[row] += 2 + 2 * self._share_code(row, snapshot)
        self._used = (snapshot.occupancy, table, assumed, uses)
        return uses

    def _share_code(self, row: int, snapshot: Snapshot) -> int:
        """Number of what all shares of a device consume; worked out anew when its holders change."""
        device = snapshot.topology.table.ids[row]
        holdings = snapshot.held_by(device)
        kept = self._consumption.get(row)
        if kept is not None and kept[0] is holdings:
            return kept[1]
        consumed = tuple(sorted(consumed_by_shares(snapshot, device).items()))
        code = self._shares.setdefault(consumed, len(self._shares))
        self._consumption[row] = (holdings, code)
        return code


def in_use(snapshot: Snapshot, rows: Iterable[int], assumed: frozenset[int]) -> AllocatedState:
    """What is held of the devices in `rows`: the rest of the fleet can't matter to this node."""
    ids = snapshot.topology.table.ids
    devices: set[DeviceID] = set()
    shared: list[DeviceID] = []
    capacity: dict[DeviceID, Mapping[str, Quantity]] = {}
    for row in rows:
        device = ids[row]
        if row in assumed:
            devices.add(device)
        for holding in snapshot.held_by(device):
            if holding.share_id is None:
                devices.add(device)
            else:
                shared.append(device)
        if snapshot.occupancy.shared[row]:
            capacity[device] = consumed_by_shares(snapshot, device)
    return AllocatedState(Holdings(devices, frozenset(shared), capacity))


def consumed_by_shares(snapshot: Snapshot, device: DeviceID) -> dict[str, Quantity]:
    """Capacity that all shares of a device consume."""
    total: dict[str, Quantity] = {}
    for holding in snapshot.held_by(device):
        if holding.share_id is not None:
            total = merged(
                total, {name: quantity_of(text) for name, text in (holding.consumed or {}).items()}
            )
    return total
