"""Devices in numbers: by driver, product and state, for a page of the fleet and for a scrape.

Owns: counting by columns. Never: who holds a device.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from extender.allocator.taints import blocking_taints
from extender.api.resource import Device
from extender.inventory.devices import CodedColumn
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceFacts

_PRODUCT = ("productName", "model", "type")


class DeviceCounter:
    """Counts a fleet again and again: a pass in Python over new rows only, the rest is columns."""

    def __init__(self) -> None:
        self._column = CodedColumn(_kind)

    def count(self, snapshot: Snapshot) -> Counter[tuple[str, str, str]]:
        """Devices by (driver, product, "free" | "taken" | "unavailable").

        Those of a node's pools that are incomplete or invalid are unavailable, whoever holds them.
        """
        topology = snapshot.topology
        table = topology.table
        rows = np.concatenate((topology.order, topology.wide_rows))
        codes = self._column.over(table)[rows]
        _, first, group = np.unique(codes, return_index=True, return_inverse=True)
        published = np.bincount(group, minlength=len(first))
        taken = np.bincount(group[snapshot.occupancy.taken[rows]], minlength=len(first))
        counted: Counter[tuple[str, str, str]] = Counter()
        for row, devices, held in zip(rows[first].tolist(), published.tolist(), taken.tolist(), strict=True):
            driver, product, blocked = _kind(table.facts[row], table.devices[row])
            counted[driver, product, "taken"] += held
            counted[driver, product, "unavailable" if blocked else "free"] += devices - held
        for slot in np.nonzero(topology.doubtful)[0].tolist():
            for pool in topology.pools.get(topology.names[slot], ()):
                if not pool.usable:
                    counted.update(
                        (pool.key.driver, product_of(device), "unavailable") for device in pool.devices()
                    )
        return +counted


def product_of(device: Device) -> str:
    """What people call the device: its product name or model, in the driver's own or any domain."""
    for wanted in _PRODUCT:
        for key, attribute in (device.attributes or {}).items():
            if key.rsplit("/", 1)[-1] == wanted and attribute.string:
                return attribute.string
    return "device"


def _kind(facts: DeviceFacts, device: Device) -> tuple[str, str, bool]:
    return facts.driver, product_of(device), bool(blocking_taints(device))
