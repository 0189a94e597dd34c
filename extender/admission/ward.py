"""The fleet's health at one moment, as quarantine sees it: which published devices are sick, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from extender.inventory.health import NODE
from extender.inventory.outlook import Lookout, Outlook
from extender.inventory.topology import Topology
from extender.model.device import DeviceID
from extender.model.reason import Reason


@dataclass(frozen=True, slots=True)
class Ward:
    """`sick`: devices to be kept from new pods. `doubtful`: those of nodes that are sick as a whole.

    `heard` says whether telemetry has lately said something of a device; `published` counts all devices.
    """

    at: float
    sick: Mapping[DeviceID, Reason]
    doubtful: frozenset[DeviceID]
    published: int
    heard: Callable[[DeviceID], bool]


def ward(topology: Topology, lookout: Lookout, now: float) -> Ward:
    """The ward of now; `now` is of the clock that telemetry is fed with."""
    outlook = lookout.look(topology, now)
    whole = {name for name, uuid in lookout.health.unhealthy(now) if uuid == NODE}
    sick: dict[DeviceID, Reason] = {}
    doubtful: set[DeviceID] = set()
    for slot in outlook.sick:
        for row in outlook.of_slot(slot).tolist():
            reason = outlook.reason(row)
            if reason is None:
                continue
            device = topology.table.ids[row]
            if topology.names[slot] in whole:
                doubtful.add(device)
            else:
                sick[device] = reason
    published = len(topology.order) + len(topology.wide_rows)
    return Ward(
        now, sick, frozenset(doubtful), published, lambda device: _heard(device, outlook, lookout, now)
    )


def _heard(device: DeviceID, outlook: Outlook, lookout: Lookout, now: float) -> bool:
    topology = outlook.topology
    row = topology.table.row_of.get(device, -1)
    places = np.nonzero(topology.order == row)[0]
    if not 0 <= row < topology.rows or not len(places) or outlook.rows[row] < 0:
        return False
    slot = int(np.searchsorted(topology.starts, places[0], side="right")) - 1
    node = lookout.store.node(topology.names[slot])
    return node is not None and now - node.heard_at <= lookout.store.ages.fresh_s
