"""Nodes: a slot each, allocatable and used amounts as columns.

A slot belongs to a node name for as long as the node exists and is given to another one after that.
Never: devices (see `devices`), or which pod causes a use (see `pods`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from extender.api.core import Node
from extender.inventory.requests import is_extended_resource, quantity_milli

Int64 = npt.NDArray[np.int64]

NATIVE = ("cpu", "memory", "pods")


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """Amounts by resource name, one element a slot, in thousandths (int64). Never written to."""

    allocatable: Mapping[str, Int64]
    used: Mapping[str, Int64]
    slots: int

    def free(self, resource: str) -> Int64 | None:
        """Allocatable less used, int64[slots]; None when no node offers the resource."""
        allocatable = self.allocatable.get(resource)
        if allocatable is None:
            return None
        used = self.used.get(resource)
        return allocatable if used is None else allocatable - used


class NodeTable:
    """Slots and columns of all nodes; the ledger is its only writer."""

    def __init__(self) -> None:
        self.slot_of: dict[str, int] = {}
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self._free_slots: list[int] = []
        self._allocatable: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in NATIVE}
        self._used: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in NATIVE}
        self._usage_by_name: dict[str, dict[str, int]] = {}
        self._columns: NodeColumns | None = None

    def __len__(self) -> int:
        return len(self.slot_of)

    def upsert(self, node: Node) -> bool:
        """Add or update a node; True when slots or labels changed, so that a topology must be rebuilt."""
        name = node.metadata.name
        slot = self.slot_of.get(name)
        if slot is None:
            structural = True
            slot = self._take_slot(name)
            for resource, amount in self._usage_by_name.get(name, {}).items():
                self._column(self._used, resource)[slot] = amount
        else:
            before = self.nodes[slot]
            structural = before is None or _placement_of(before) != _placement_of(node)
        self.nodes[slot] = node
        offered = node.status.allocatable or {}
        self._columns = None
        for resource, column in self._writable(self._allocatable).items():
            column[slot] = quantity_milli(offered[resource]) if resource in offered else 0
        for resource in offered:
            if resource not in self._allocatable and is_extended_resource(resource):
                self._column(self._allocatable, resource)[slot] = quantity_milli(offered[resource])
        return structural

    def delete(self, name: str) -> bool:
        """Forget a node; True when it was known."""
        slot = self.slot_of.pop(name, None)
        if slot is None:
            return False
        self.nodes[slot] = None
        self.names[slot] = ""
        self._columns = None
        for columns in (self._allocatable, self._used):
            for column in self._writable(columns).values():
                column[slot] = 0
        self._free_slots.append(slot)
        return True

    def use(self, name: str, amounts: Mapping[str, int], sign: int) -> None:
        """Count (`sign` 1) or give back (-1) what a pod bound to node `name` asks for, in thousandths.

        A node which is not known yet gets the amounts when it appears: watches of different kinds race.
        """
        usage = self._usage_by_name.setdefault(name, {})
        slot = self.slot_of.get(name)
        self._columns = None
        for resource, amount in amounts.items():
            usage[resource] = usage.get(resource, 0) + sign * amount
            if slot is not None and (resource in NATIVE or is_extended_resource(resource)):
                self._column(self._used, resource)[slot] = usage[resource]
            if not usage[resource]:
                del usage[resource]
        if not usage:
            del self._usage_by_name[name]

    def columns(self) -> NodeColumns:
        """Columns as they stand; the next write copies what it touches."""
        if self._columns is None:
            self._columns = NodeColumns(dict(self._allocatable), dict(self._used), len(self.names))
            self._shared = True
            for column in (*self._allocatable.values(), *self._used.values()):
                column.flags.writeable = False
        return self._columns

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
        return slot

    @staticmethod
    def _writable(columns: dict[str, Int64]) -> dict[str, Int64]:
        for resource, column in columns.items():
            if not column.flags.writeable:
                columns[resource] = column.copy()
        return columns

    def _column(self, columns: dict[str, Int64], resource: str) -> Int64:
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = np.zeros(len(self._allocatable["cpu"]), np.int64)
        elif not column.flags.writeable:
            column = columns[resource] = column.copy()
        return column


def _placement_of(node: Node) -> tuple[object, ...]:
    """The part of a node that topology is made from."""
    return (node.metadata.uid, node.metadata.labels, node.spec, node.status.declared_features)
