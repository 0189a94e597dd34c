"""Nodes: a slot each, allocatable and used amounts as columns.

A slot belongs to a node name for as long as the node exists and is given to another one after that.
Never: devices (see `devices`), or which pod causes a use (see `pods`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from extender.api.core import Node
from extender.inventory.requests import is_extended_resource, quantity_milli

Int64 = npt.NDArray[np.int64]

NATIVE = ("cpu", "memory", "pods")
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """Amounts by resource name, one element a slot, in thousandths (int64). Never written to.

    `allocatable` names what at least one node lists, be it with 0. `objects` are the nodes as last seen, by
    slot; None for a free slot.
    """

    allocatable: Mapping[str, Int64]
    used: Mapping[str, Int64]
    slots: int
    objects: Sequence[Node | None]

    def free(self, resource: str) -> Int64 | None:
        """Allocatable less used, int64[slots]; None when no node offers the resource."""
        allocatable = self.allocatable.get(resource)
        if allocatable is None:
            return None
        used = self.used.get(resource)
        return allocatable if used is None else allocatable - used


class NodeTable:
    """Slots and columns of all nodes; the ledger is its only writer.

    `slots_version` grows when a name gets or loses its slot, `placement_version` when what topology reads of
    a node changes.
    """

    def __init__(self) -> None:
        self.slot_of: dict[str, int] = {}
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.slots_version = 0
        self.placement_version = 0
        self._free_slots: list[int] = []
        self._allocatable: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in NATIVE}
        self._used: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in NATIVE}
        self._offers: dict[int, Mapping[str, int]] = {}
        self._listed: Counter[str] = Counter()
        self._usage_by_name: dict[str, dict[str, int]] = {}
        self._columns: NodeColumns | None = None

    def __len__(self) -> int:
        return len(self.slot_of)

    def upsert(self, node: Node) -> int | None:
        """Add or update a node; its slot when topology must hear of the change, else None."""
        name = node.metadata.name
        slot = self.slot_of.get(name)
        before = None if slot is None else self.nodes[slot]
        offered: dict[str, int] | None = None
        if before is None or before.status.allocatable != node.status.allocatable:
            offered = _offered_by(node)
        if slot is None:
            slot = self._take_slot(name)
            for resource, amount in self._usage_by_name.get(name, {}).items():
                self._column(self._used, resource)[slot] = _held(amount)
        structural = before is None or _placement_of(before) != _placement_of(node)
        self.nodes[slot] = node
        self._columns = None
        if offered is not None:
            self._offer(slot, offered)
        if structural:
            self.placement_version += 1
        return slot if structural else None

    def delete(self, name: str) -> int | None:
        """Forget a node; the slot that it leaves, None when it was not known."""
        slot = self.slot_of.pop(name, None)
        if slot is None:
            return None
        self.nodes[slot] = None
        self.names[slot] = ""
        self._columns = None
        self._offer(slot, {})
        for resource in self._usage_by_name.get(name, {}):
            self._column(self._used, resource)[slot] = 0
        self._free_slots.append(slot)
        self.slots_version += 1
        self.placement_version += 1
        return slot

    def use(self, name: str, amounts: Mapping[str, int], sign: int) -> None:
        """Count (`sign` 1) or give back (-1) what a pod bound to node `name` asks for, in thousandths.

        A node which is not known yet gets the amounts when it appears: watches of different kinds race.
        """
        usage = self._usage_by_name.setdefault(name, {})
        slot = self.slot_of.get(name)
        self._columns = None
        for resource, amount in amounts.items():
            if resource not in NATIVE and not is_extended_resource(resource):
                continue
            left = usage[resource] = usage.get(resource, 0) + sign * amount
            if slot is not None:
                self._column(self._used, resource)[slot] = _held(left)
            if not left:
                del usage[resource]
        if not usage:
            del self._usage_by_name[name]

    def columns(self) -> NodeColumns:
        """Columns as they stand; the next write copies what it touches."""
        if self._columns is None:
            self._columns = NodeColumns(
                {name: c for name, c in self._allocatable.items() if name in NATIVE or self._listed[name]},
                {name: c for name, c in self._used.items() if name in NATIVE or c.any()},
                len(self.names),
                self.nodes.copy(),
            )
            for column in (*self._allocatable.values(), *self._used.values()):
                column.flags.writeable = False
        return self._columns

    def _offer(self, slot: int, offered: Mapping[str, int]) -> None:
        """Write what the node of a slot offers over what it offered."""
        former = self._offers.pop(slot, {})
        if offered:
            self._offers[slot] = offered
        for resource in {**former, **offered}:
            self._listed[resource] += (resource in offered) - (resource in former)
            if former.get(resource, 0) != offered.get(resource, 0):
                self._column(self._allocatable, resource)[slot] = offered.get(resource, 0)
            elif resource not in self._allocatable:
                self._column(self._allocatable, resource)

    def _take_slot(self, name: str) -> int:
        if self._free_slots:
            slot = self._free_slots.pop()
            self.names[slot] = name
        else:
            slot = len(self.names)
            self.names.append(name)
            self.nodes.append(None)
            if slot >= len(self._allocatable["cpu"]):
                size = max(64, 2 * slot)
                for columns in (self._allocatable, self._used):
                    for resource, column in columns.items():
                        columns[resource] = np.concatenate([column, np.zeros(size - len(column), np.int64)])
        self.slot_of[name] = slot
        self.slots_version += 1
        return slot

    def _column(self, columns: dict[str, Int64], resource: str) -> Int64:
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = np.zeros(len(self._allocatable["cpu"]), np.int64)
        elif not column.flags.writeable:
            column = columns[resource] = column.copy()
        return column


def _offered_by(node: Node) -> dict[str, int]:
    """What a node offers, in thousandths. Raises QuantityError."""
    return {
        resource: quantity_milli(value)
        for resource, value in (node.status.allocatable or {}).items()
        if resource in NATIVE or is_extended_resource(resource)
    }


def _held(amount: int) -> int:
    """An amount as a column can hold it."""
    return min(amount, _MOST)


def _placement_of(node: Node) -> tuple[object, ...]:
    """The part of a node that topology is made from."""
    return (node.metadata.uid, node.metadata.labels, node.spec, node.status.declared_features)
