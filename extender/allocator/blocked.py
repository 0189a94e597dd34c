"""Healthy devices that an unfit one keeps from ungated pods.

kube-scheduler takes the first free device that fits. If that one is unfit, Berth refuses the node, and what
stands behind the unfit device can't be had until it is quarantined, taken or well again.
Never: selectors: a request that the unfit device would not match is not stopped by it.
"""

from __future__ import annotations

import numpy as np

from extender.allocator.taints import blocking_taints
from extender.inventory.occupancy import Occupancy
from extender.inventory.outlook import Outlook


def blocked_devices(outlook: Outlook, occupancy: Occupancy) -> dict[int, int]:
    """Free, fit devices by slot of the nodes whose first free device is unfit and carries no taint."""
    table = outlook.topology.table
    blocked: dict[int, int] = {}
    for slot in outlook.sick:
        rows = outlook.of_slot(slot)
        open_ = [
            row for row in rows[~occupancy.taken[rows]].tolist() if not blocking_taints(table.devices[row])
        ]
        unfit = outlook.unfit[open_] > 0 if open_ else np.zeros(0, np.bool_)
        if open_ and unfit[0] and not unfit.all():
            blocked[slot] = int(np.count_nonzero(~unfit))
    return blocked
