"""The ledger in numbers for Prometheus, cheap enough for a scrape to hold up nobody.

Owns: counting devices by columns, and when the snapshot in use was made. Never: a change of the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from operator import eq

import numpy as np

from extender.allocator.taints import blocking_taints
from extender.api.resource import Device
from extender.inventory.devices import CodedColumn
from extender.inventory.ledger import Ledger
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceFacts
from extender.observability.readings import InventoryReading

UNAVAILABLE = "unavailable"


class LedgerGauges:
    """Reads one ledger; `clock` gives monotonic seconds."""

    def __init__(
        self, ledger: Ledger, synced: Callable[[], Mapping[str, bool]], clock: Callable[[], float]
    ) -> None:
        """`synced`: whether each kind that is watched has been listed."""
        self._ledger = ledger
        self._synced = synced
        self._clock = clock
        self._devices = DeviceCounter()
        self._last: Snapshot | None = None
        self._made = 0.0

    def look(self) -> Snapshot:
        """Take the snapshot of now and note when it was first seen; to be called a few times a second."""
        snapshot = self._ledger.snapshot()
        if snapshot is not self._last:
            self._last, self._made = snapshot, self._clock()
        return snapshot

    def read(self) -> InventoryReading:
        """Everything, now."""
        snapshot = self.look()
        return InventoryReading(
            objects=self._ledger.counts(),
            devices=self._devices.count(snapshot),
            synced=self._synced(),
            undecodable=dict(self._ledger.unreadable),
            in_flight=len(self._ledger.in_flight),
            snapshot_age=self._clock() - self._made,
        )


class DeviceCounter:
    """Devices by driver and state: a pass in Python over new rows only, the rest is columns."""

    def __init__(self) -> None:
        self._kinds: set[tuple[str, bool]] = set()
        self._column = CodedColumn(self._kind)

    def count(self, snapshot: Snapshot) -> Counter[tuple[str, str]]:
        """Devices by (driver, "free" | "taken" | "unavailable").

        Those of pools that are incomplete or invalid are unavailable, whoever holds them.
        """
        topology = snapshot.topology
        rows = np.concatenate((topology.order, topology.wide_rows))
        taken = snapshot.occupancy.taken[rows]
        counted: Counter[tuple[str, str]] = Counter()
        self._column.over(topology.table)  # makes the kinds known
        for driver, blocked in sorted(self._kinds):
            mine = self._column.where(topology.table, partial(eq, (driver, blocked)))[rows]
            held = int(np.count_nonzero(mine & taken))
            left = int(np.count_nonzero(mine)) - held
            for state, devices in (("taken", held), (UNAVAILABLE if blocked else "free", left)):
                if devices:
                    counted[driver, state] += devices
        for slot in np.nonzero(topology.doubtful)[0].tolist():
            for pool in topology.pools.get(topology.names[slot], ()):
                if not pool.usable:
                    devices = sum(len(member.spec.devices or ()) for member in pool.slices)
                    counted[pool.key.driver, UNAVAILABLE] += devices
        return counted

    def _kind(self, facts: DeviceFacts, device: Device) -> tuple[str, bool]:
        kind = (facts.driver, bool(blocking_taints(device)))
        self._kinds.add(kind)
        return kind
