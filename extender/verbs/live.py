"""Live telemetry of devices for people: values, their state and age, health, and who holds the device.

Never: a value where the state says there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
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
    read = {}
    for (
        name
    ) in _SHOWN:  # as lists: one value of an array at a time is slow; a MIG device is as warm as its GPU
        values, states = columns.column(name, gpus if name == "temperature" else own, now)
        read[name] = values.tolist(), states.tolist()
    ages = columns.ages(own, now).tolist()
    slots = _slots(outlook, at).tolist()
    devices = own.tolist()
    readable = int(Freshness.STALE)
    shown = []
    for i, row in enumerate(rows):
        device = lookout.store.device(devices[i])
        value = {
            name: int(values[i]) if states[i] <= readable else None for name, (values, states) in read.items()
        }
        findings = lookout.findings(outlook, slots[i], row, now) if slots[i] >= 0 else []
        device_id = topology.table.ids[row]
        shown.append(
            TelemetryRow(
                device=str(device_id),
                uuid=device.uuid if device is not None else "",
                state=_STATES[min(states[i] for _, states in read.values())],
                age=round(ages[i], 1) if isfinite(ages[i]) else None,
                utilisation=value["utilisation_gpu"],
                memory_used=value["memory_used"],
                memory_total=value["memory_total"],
                temperature=value["temperature"],
                health=tuple(str(finding.reason) for finding in findings),
                text="; ".join(finding.text for finding in findings),
                holders=_holders(snapshot, device_id),
            )
        )
    return tuple(shown)


def unpublished_on(lookout: Lookout | None, snapshot: Snapshot, node: str, now: float) -> tuple[str, ...]:
    """The uuids that telemetry sees on a node and no slice has; nothing without a lookout."""
    slot = snapshot.topology.slot_of.get(node)
    if lookout is None or slot is None:
        return ()
    return lookout.look(snapshot.topology, now).unpublished.get(slot, ())


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
