"""Devices counted one by one from what was published: the other opinion to counting by columns."""

from __future__ import annotations

from collections.abc import Iterator

from extender.api.resource import Device
from extender.inventory.pools import PoolState
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceID
from extender.verbs.counting import product_of


def device_states(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Driver, product and state of every device."""
    for pools in (
        *(snapshot.topology.pools.get(name, ()) for name in snapshot.topology.slot_of),
        snapshot.topology.wide,
    ):
        for pool in pools:
            for device in pool.devices():
                yield pool.key.driver, product_of(device), _state(snapshot, pool, device)


def _state(snapshot: Snapshot, pool: PoolState, device: Device) -> str:
    if pool.node is not None and not pool.usable:
        return "unavailable"
    held = snapshot.held_by(DeviceID(pool.key.driver, pool.key.pool, device.name))
    if any(holding.share_id is None for holding in held):
        return "taken"
    blocked = any(taint.effect in {"NoSchedule", "NoExecute"} for taint in device.taints or ())
    return "unavailable" if blocked else "free"
