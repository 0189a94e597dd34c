"""The ledger in numbers for Prometheus, cheap enough for a scrape to hold up nobody.

Owns: when the snapshot in use was made. Never: a change of the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from extender.inventory.ledger import Ledger
from extender.inventory.snapshot import Snapshot
from extender.observability.readings import InventoryReading
from extender.verbs.counting import DeviceCounter


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
            devices=by_state(self._devices.count(snapshot)),
            synced=self._synced(),
            undecodable=dict(self._ledger.unreadable),
            in_flight=len(self._ledger.in_flight),
            double_granted=self._ledger.double_granted,
            snapshot_age=self._clock() - self._made,
        )


def by_state(counted: Mapping[tuple[str, str, str], int]) -> Counter[tuple[str, str]]:
    """Devices by driver and state, the products added up."""
    states: Counter[tuple[str, str]] = Counter()
    for (driver, _, state), devices in counted.items():
        states[driver, state] += devices
    return states
