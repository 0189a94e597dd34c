"""The fleet's shape at one moment: nodes by slot, and each node's devices in the allocator's order.

Made from slices and nodes only; claims and pods change it never, so it lives for minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from extender.api.core import Node
from extender.api.resource import Device
from extender.inventory.devices import DeviceTable, Int32
from extender.inventory.nodes import NodeTable
from extender.inventory.pools import PoolState, PoolTable
from extender.model.device import DeviceFacts

Bool = npt.NDArray[np.bool_]

_NO_ROWS: Int32 = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Topology:
    """Nodes and devices as published; immutable.

    `order` holds the rows of all devices in complete, valid local pools, node by node in slot order and
    within a node in the order in which kube-scheduler's allocator tries them; the devices of slot `s` are
    `order[starts[s]:starts[s + 1]]`.
    """

    table: DeviceTable  # rows and ids; its columns are read through `facts` and `devices` below
    facts: Sequence[DeviceFacts]  # by row
    devices: Sequence[Device]  # by row
    names: Sequence[str]  # by slot, "" for a free slot
    nodes: Sequence[Node | None]  # by slot
    slot_of: Mapping[str, int]
    order: Int32  # int32[n]
    starts: Int32  # int32[slots + 1]
    slot_of_row: Int32  # int32[rows]; -1: not reachable through a local pool
    pools: Mapping[str, tuple[PoolState, ...]]  # local pools by node, the unusable ones too
    wide: tuple[PoolState, ...]
    wide_rows: Int32  # rows of devices in pools that several nodes may reach
    doubtful: Bool  # bool[slots]: a local pool is incomplete or invalid (matters for mode All)
    pools_shape: Int32  # int32[slots]: equal for nodes whose local pools are alike but for their devices
    accelerator: Bool  # bool[slots]: a device that is an accelerator is published for the node
    version: int

    def per_node(self, mask: Bool) -> Int32:
        """Count by slot of the devices for which `mask` (bool[n], in `order`) holds, int32[slots]."""
        running = np.zeros(len(mask) + 1, np.int32)
        np.cumsum(mask, out=running[1:], dtype=np.int32)
        at = running[self.starts]
        return at[1:] - at[:-1]


class TopologyBuilder:
    """Keeps each node's rows and makes a topology when asked after a change."""

    def __init__(self, ignored_drivers: Sequence[str]) -> None:
        self._ignored = frozenset(ignored_drivers)
        self._rows: dict[str, Int32] = {}
        self._pools: dict[str, tuple[PoolState, ...]] = {}
        self._flags: dict[str, tuple[int, bool, bool]] = {}
        self._shapes: dict[tuple[object, ...], int] = {(): 0}
        self._version = 0
        self._current: Topology | None = None

    def node_pools_changed(self, node: str, pools: PoolTable, table: DeviceTable) -> None:
        """The local pools of a node are others now: enter their devices as rows."""
        local = pools.local(node)
        self._current = None
        if not local:
            for known in (self._rows, self._pools, self._flags):
                known.pop(node, None)
            return
        rows = [
            table.upsert(pool.key.driver, pool.key.pool, device)
            for pool in local
            if pool.complete and pool.valid
            for member in pool.slices
            for device in member.spec.devices or ()
        ]
        self._rows[node] = np.array(rows, np.int32) if rows else _NO_ROWS
        self._pools[node] = tuple(local)
        doubtful = any(not (pool.complete and pool.valid) for pool in local)
        accelerator = any(
            pool.key.driver not in self._ignored and any(member.spec.devices for member in pool.slices)
            for pool in local
        )
        shape = self._shapes.setdefault(tuple(pool.shape for pool in local), len(self._shapes))
        self._flags[node] = (shape, doubtful, accelerator)

    def invalidate(self) -> None:
        """Nodes or wide pools changed."""
        self._current = None

    def current(self, nodes: NodeTable, pools: PoolTable, table: DeviceTable) -> Topology:
        """The topology of now; built only after a change."""
        if self._current is None:
            self._version += 1
            self._current = self._build(nodes, pools, table)
        return self._current

    def _build(self, nodes: NodeTable, pools: PoolTable, table: DeviceTable) -> Topology:
        names = list(nodes.names)
        rows = [self._rows.get(name, _NO_ROWS) for name in names]
        starts = np.zeros(len(names) + 1, np.int32)
        np.cumsum([len(r) for r in rows], out=starts[1:]) if rows else None
        order = np.concatenate(rows) if rows else _NO_ROWS
        slot_of_row = np.full(len(table), -1, np.int32)
        slot_of_row[order] = np.repeat(np.arange(len(names), dtype=np.int32), np.diff(starts))
        wide = tuple(pools.wide())
        wide_rows = (
            [
                table.row_of[device_id]
                for device_id in table.row_of
                if (device_id.driver, device_id.pool) in {pool.key for pool in wide}
            ]
            if wide
            else []
        )
        none = (0, False, False)
        flags = np.array([self._flags.get(name, none) for name in names], np.int32).reshape(-1, 3)
        return Topology(
            table=table,
            facts=list(table.facts),
            devices=list(table.devices),
            names=names,
            nodes=list(nodes.nodes),
            slot_of=dict(nodes.slot_of),
            order=order,
            starts=starts,
            slot_of_row=slot_of_row,
            pools=dict(self._pools),
            wide=wide,
            wide_rows=np.array(wide_rows, np.int32),
            pools_shape=flags[:, 0],
            doubtful=flags[:, 1].astype(np.bool_),
            accelerator=flags[:, 2].astype(np.bool_),
            version=self._version,
        )
