"""Live telemetry of devices for people: values, their state and age, health, and who holds the device.

Never: a value where the state says there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

import numpy as np

from extender.inventory.devices import Int32
from extender.inventory.outlook import Lookout, Outlook
from extender.inventory.snapshot import Snapshot
from extender.inventory.telemetry_columns import Freshness
from extender.model.device import DeviceID
from extender.verbs.views import TelemetryRow, TelemetryState

_STATES: Final[tuple[TelemetryState, ...]] = get_args(TelemetryState)
_Reading = Literal["utilisation_gpu", "memory_used", "memory_total", "temperature"]
_SHOWN: Final[tuple[_Reading, ...]] = ("utilisation_gpu", "memory_used", "memory_total", "temperature")


def telemetry_of(
    lookout: Lookout | None, snapshot: Snapshot, rows: Sequence[int], now: float
) -> tuple[TelemetryRow, ...]:
    """What is known of the devices in `rows`, in their order; nothing without a lookout."""
    if lookout is None or not rows:
        return ()
    topology = snapshot.topology
    outlook = lookout.look(topology, now)
    at = np.array(rows, np.int32)
    own, gpus = outlook.rows[at], outlook.gpus[at]
    columns = lookout.store.columns
    read = {
        name: columns.column(name, gpus if name == "temperature" else own, now) for name in _SHOWN
    }  # a MIG device is as warm as its GPU
    ages = columns.ages(own, now)
    slots = _slots(outlook, at)
    shown = []
    for i, row in enumerate(rows):
        device = lookout.store.device(int(own[i]))
        states = [int(read[name][1][i]) for name in _SHOWN]
        values = {
            name: int(read[name][0][i]) if read[name][1][i] <= Freshness.STALE else None for name in _SHOWN
        }
        slot = int(slots[i])
        findings = lookout.findings(outlook, slot, row, now) if slot >= 0 else []
        device_id = topology.table.ids[row]
        shown.append(
            TelemetryRow(
                device=str(device_id),
                uuid=device.uuid if device is not None else "",
                state=_STATES[min(states)],
                age=round(float(ages[i]), 1) if np.isfinite(ages[i]) else None,
                utilisation=values["utilisation_gpu"],
                memory_used=values["memory_used"],
                memory_total=values["memory_total"],
                temperature=values["temperature"],
                health=tuple(str(finding.reason) for finding in findings),
                text="; ".join(finding.text for finding in findings),
                holders=_holders(snapshot, device_id),
            )
        )
    return tuple(shown)


def _slots(outlook: Outlook, rows: Int32) -> Int32:
    """The slots of device rows, -1 for a device that is no node's own."""
    of = np.full(len(outlook.rows), -1, np.int32)
    of[outlook.topology.order] = outlook.topology.slot_at
    found: Int32 = of[rows]
    return found


def _holders(snapshot: Snapshot, device: DeviceID) -> tuple[str, ...]:
    """Pods (namespace/name) that the claims on a device are reserved for; a claim in brackets for none."""
    found: list[str] = []
    for holding in snapshot.held_by(device):
        key = holding.claim
        claim = snapshot.claim(key.namespace, key.name)
        pods = [each.name for each in (claim.status.reserved_for if claim is not None else None) or ()]
        found += [f"{key.namespace}/{name}" for name in pods] or [f"[{key}]"]
    return tuple(found)
