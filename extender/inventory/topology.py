"""The fleet's shape at one moment: nodes by slot, and each node's devices in the allocator's order.

Made from slices and nodes only; claims and pods change it never, so it lives for minutes. A change of a node
or a pool makes a new topology that shares with the old one all that did not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from extender.api.core import Node
from extender.inventory.columns import resized
from extender.inventory.devices import DeviceTable, Int32
from extender.inventory.nodes import NodeTable
from extender.inventory.pools import PoolState, PoolTable
from extender.inventory.sharedmap import SharedMap
from extender.model.device import DeviceFacts
from extender.model.ids import PoolKey

Bool = npt.NDArray[np.bool_]

_NO_ROWS: Int32 = np.zeros(0, np.int32)
_NO_FLAGS = (0, False, False, False)
_FEW = 64
"""Up to so many changed slots are spliced in one by one; more make a new topology from the ground."""


@dataclass(frozen=True, eq=False)
class Topology:
    """Nodes and devices as published; immutable.

    `order` holds the rows of all devices in complete, valid local pools, node by node in slot order and
    within a node in the order in which kube-scheduler's allocator tries them; the devices of slot `s` are
    `order[starts[s]:starts[s + 1]]`. Of `table` only the first `rows` rows belong to this topology. `names`,
    `slot_of`, `nodes` and `wide` stay the same objects for as long as they hold the same.
    """

    table: DeviceTable
    rows: int
    names: Sequence[str]  # by slot, "" for a free slot
    nodes: Sequence[Node | None]  # by slot; labels, taints and features are right, conditions may be old
    slot_of: Mapping[str, int]
    order: Int32  # int32[n]
    starts: Int32  # int32[slots + 1]
    pools: Mapping[str, tuple[PoolState, ...]]  # local pools by node, the unusable ones too
    wide: tuple[PoolState, ...]
    wide_rows: Int32  # rows of devices in pools that several nodes may reach
    doubtful: Bool  # bool[slots]: a local pool is incomplete or invalid (matters for mode All)
    grouped: Bool  # bool[slots]: a local pool has compatibility groups: features decide what counts
    pools_shape: Int32  # int32[slots]: equal for nodes whose local pools are alike but for their devices
    accelerator: Bool  # bool[slots]: a device that is an accelerator is published for the node
    version: int

    @property
    def facts(self) -> Sequence[DeviceFacts]:
        """What selectors see of each device, by row; a copy."""
        return self.table.facts[: self.rows]

    @cached_property
    def slot_at(self) -> Int32:
        """The slot of each device of `order`, int32[n]."""
        lengths = np.diff(self.starts)
        return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)

    def devices_of(self, slot: int) -> Int32:
        """Rows of a node's own devices, in the allocator's order, int32[k]."""
        return self.order[self.starts[slot] : self.starts[slot + 1]]

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
        self._pools: SharedMap[str, tuple[PoolState, ...]] = SharedMap()
        self._flags: dict[str, tuple[int, bool, bool, bool]] = {}
        self._shapes: dict[tuple[object, ...], int] = {(): 0}
        self._version = 0
        self._last: Topology | None = None
        self._stale = True
        self._nodes: set[str] = set()  # whose local pools changed since the last topology
        self._slots: set[int] = set()  # that changed hands or labels since then
        self._seen = (-1, -1)  # versions of the node table that the last topology shows

    def node_pools_changed(self, node: str, local: Sequence[PoolState], rows: Sequence[int]) -> None:
        """The local pools of a node, in the allocator's order, and the rows of the usable ones' devices."""
        self._stale = True
        self._nodes.add(node)
        if not local:
            self._rows.pop(node, None)
            self._flags.pop(node, None)
            self._pools.pop(node)
            return
        self._rows[node] = np.array(rows, np.int32) if rows else _NO_ROWS
        self._pools.set(node, tuple(local))
        shape = self._shapes.setdefault(tuple(pool.shape for pool in local), len(self._shapes))
        self._flags[node] = (
            shape,
            any(not pool.usable for pool in local),
            any(pool.groups for pool in local),
            any(
                pool.key.driver not in self._ignored and any(member.spec.devices for member in pool.slices)
                for pool in local
            ),
        )

    def wide_pools_changed(self) -> None:
        """A pool that several nodes may reach changed, came or went."""
        self._stale = True

    def slot_changed(self, slot: int) -> None:
        """A node came, went, or changed in what topology holds of it."""
        self._stale = True
        self._slots.add(slot)

    def renumbered(self, number: Int32) -> None:
        """The device table was compacted: live row i is row `number[i]` now."""
        self._rows = {node: number[held] for node, held in self._rows.items()}
        self._last = None
        self._stale = True

    def current(
        self,
        nodes: NodeTable,
        pools: PoolTable,
        table: DeviceTable,
        rows_of: Mapping[PoolKey, Mapping[str, int]],
    ) -> Topology:
        """The topology of now; made only after a change. `rows_of`: rows by device name, by pool."""
        if self._last is not None and not self._stale:
            return self._last
        self._version += 1
        changed = self._slots | {nodes.slot_of[name] for name in self._nodes if name in nodes.slot_of}
        last = self._last
        if last is None or len(changed) > _FEW:
            last = self._build(last, nodes, table)
        elif changed:
            last = self._spliced(last, nodes, sorted(changed))
        wide = pools.wide()
        wide_rows = last.wide_rows
        if wide is not last.wide:
            wide_rows = np.array([row for pool in wide for row in rows_of[pool.key].values()], np.int32)
        self._last = replace(
            last,
            table=table,
            rows=len(table),
            pools=self._pools.copy(),
            wide=wide,
            wide_rows=wide_rows,
            version=self._version,
        )
        self._stale = False
        self._nodes.clear()
        self._slots.clear()
        self._seen = (nodes.slots_version, nodes.placement_version)
        return self._last

    def _build(self, last: Topology | None, nodes: NodeTable, table: DeviceTable) -> Topology:
        names, slot_of, objects = self._of_nodes(last, nodes)
        rows = [self._rows.get(name, _NO_ROWS) for name in names]
        starts = np.zeros(len(names) + 1, np.int32)
        if rows:
            np.cumsum(np.fromiter(map(len, rows), np.int32, len(rows)), out=starts[1:])
        flags = [self._flags.get(name, _NO_FLAGS) for name in names]
        shape, doubtful, grouped, accelerator = zip(*flags, strict=True) if flags else ((), (), (), ())
        return Topology(
            table=table,
            rows=len(table),
            names=names,
            nodes=objects,
            slot_of=slot_of,
            order=np.concatenate(rows) if rows else _NO_ROWS,
            starts=starts,
            pools={},
            wide=(),
            wide_rows=_NO_ROWS,
            doubtful=np.array(doubtful, np.bool_),
            grouped=np.array(grouped, np.bool_),
            pools_shape=np.array(shape, np.int32),
            accelerator=np.array(accelerator, np.bool_),
            version=self._version,
        )

    def _spliced(self, last: Topology, nodes: NodeTable, changed: Sequence[int]) -> Topology:
        """The last topology with the changed slots put in place."""
        names, slot_of, objects = self._of_nodes(last, nodes)
        more = len(names) - len(last.names)
        order = last.order
        starts = np.concatenate((last.starts, np.full(more, last.starts[-1], np.int32)))
        shape, doubtful = resized(last.pools_shape, len(names)), resized(last.doubtful, len(names))
        grouped, accelerator = resized(last.grouped, len(names)), resized(last.accelerator, len(names))
        for slot in changed:
            name = names[slot]
            rows = self._rows.get(name, _NO_ROWS)
            start, end = int(starts[slot]), int(starts[slot + 1])
            if len(rows) != end - start:
                order = np.concatenate((order[:start], rows, order[end:]))
                starts[slot + 1 :] += len(rows) - (end - start)
            elif not np.array_equal(rows, order[start:end]):
                order = order.copy() if order is last.order else order
                order[start:end] = rows
            shape[slot], doubtful[slot], grouped[slot], accelerator[slot] = self._flags.get(name, _NO_FLAGS)
        return replace(
            last,
            names=names,
            slot_of=slot_of,
            nodes=objects,
            order=order,
            starts=starts,
            pools_shape=shape,
            doubtful=doubtful,
            grouped=grouped,
            accelerator=accelerator,
        )

    def _of_nodes(
        self, last: Topology | None, nodes: NodeTable
    ) -> tuple[Sequence[str], Mapping[str, int], Sequence[Node | None]]:
        slots, placement = self._seen
        if last is None or slots != nodes.slots_version:
            return nodes.names.copy(), nodes.slot_of.copy(), nodes.nodes.copy()
        if placement != nodes.placement_version:
            return last.names, last.slot_of, nodes.nodes.copy()
        return last.names, last.slot_of, last.nodes
