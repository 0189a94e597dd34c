"""Devices: a row for each state of each device, in the order in which the states were seen.

Rows are append-only: a device that is published anew with other values gets a new row and leaves its old one
dead, so whoever kept a row number and the table reads the same for ever. A compaction (when too many rows are
dead) makes a new table of the live ones.
Never: which nodes reach a device in what order (see `topology`), or who holds it (see `claims`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from extender.api.resource import Device
from extender.model.device import DeviceFacts, DeviceID

Int32 = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]


class DeviceTable:
    """Append-only rows of device states; `row_of` has the live ones."""

    def __init__(self) -> None:
        self.ids: list[DeviceID] = []
        self.facts: list[DeviceFacts] = []
        self.devices: list[Device] = []
        self.row_of: dict[DeviceID, int] = {}
        self.parent: weakref.ref[DeviceTable] | None = None
        self.kept: Int32 = np.zeros(0, np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def version(self) -> int:
        """Grows with each change: the number of rows."""
        return len(self.ids)

    @property
    def dead(self) -> int:
        """Rows whose device is gone or has a newer row."""
        return len(self.ids) - len(self.row_of)

    def upsert(self, driver: str, pool: str, device: Device) -> int:
        """Add or update a device and return its row; an unchanged one keeps its row."""
        device_id = DeviceID(driver, pool, device.name)
        row = self.row_of.get(device_id)
        if row is not None and self.devices[row] == device:
            return row
        row = self.row_of[device_id] = len(self.ids)
        self.ids.append(device_id)
        self.facts.append(
            DeviceFacts(
                driver,
                device.attributes or {},
                device.capacity or {},
                bool(device.allow_multiple_allocations),
            )
        )
        self.devices.append(device)
        return row

    def forget(self, device_id: DeviceID) -> None:
        """The device is published no more."""
        self.row_of.pop(device_id, None)

    def changed_since(self, version: int) -> npt.NDArray[np.intp]:
        """Rows added after `version`, intp[n]."""
        return np.arange(max(version, 0), len(self.ids), dtype=np.intp)

    def compacted(self) -> DeviceTable:
        """A table of the live rows in their order: row i there is row `kept[i]` here."""
        table = DeviceTable()
        rows = sorted(self.row_of.values())
        table.ids = [self.ids[row] for row in rows]
        table.facts = [self.facts[row] for row in rows]
        table.devices = [self.devices[row] for row in rows]
        table.row_of = {device_id: row for row, device_id in enumerate(table.ids)}
        table.parent = weakref.ref(self)
        table.kept = np.array(rows, np.int32)
        return table


class CodedColumn:
    """One property of every device as small integers: equal values have equal codes (int32, one a row)."""

    __slots__ = ("_codes", "_of", "_read", "_rows", "_values")

    def __init__(self, read: Callable[[DeviceFacts, Device], object]) -> None:
        self._read = read
        self._of: DeviceTable | None = None
        self._rows = 0
        self._values: dict[object, int] = {}
        self._codes: Int32 = np.zeros(0, np.int32)

    def over(self, table: DeviceTable) -> Int32:
        """Codes for all rows of `table`, int32[len(table)]; only new rows are read."""
        if self._of is not table:
            self._follow(table)
        rows = len(table)
        if self._rows < rows:
            if len(self._codes) < rows:
                grown = np.zeros(max(rows, 2 * len(self._codes)), np.int32)
                grown[: self._rows] = self._codes[: self._rows]
                self._codes = grown
            values, read = self._values, self._read
            fresh = zip(table.facts[self._rows :], table.devices[self._rows :], strict=True)
            self._codes[self._rows : rows] = [
                values.setdefault(read(facts, device), len(values)) for facts, device in fresh
            ]
            self._rows = rows
        return self._codes[:rows]

    def where(self, table: DeviceTable, holds: Callable[[Any], bool]) -> Bool:
        """Rows whose value satisfies `holds`, bool[len(table)]; asked once a distinct value."""
        codes = self.over(table)
        answers = np.fromiter((holds(value) for value in self._values), np.bool_, len(self._values))
        found: Bool = answers[codes] if len(answers) else np.zeros(len(codes), np.bool_)
        return found

    def _follow(self, table: DeviceTable) -> None:
        """Go over to another table: of its parent the codes are known, of a stranger none."""
        former, self._of = self._of, table
        if former is not None and table.parent is not None and table.parent() is former:
            self._of = former
            self._codes = self.over(former)[table.kept]
            self._rows, self._of = len(table.kept), table
        else:
            self._codes, self._rows, self._values = np.zeros(0, np.int32), 0, {}


def group_rows(columns: Sequence[Int32]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Group rows by equal codes in all columns (at least one, int32[n] each).

    Returns one row of each group, intp[groups], and the group of each row, intp[n].
    """
    spans = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(spans) < 2**62:
        keys = columns[0].astype(np.int64)
        for column, span in zip(columns[1:], spans[1:], strict=True):
            keys = keys * span + column
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    else:
        stacked = np.ascontiguousarray(np.stack(columns, axis=1))
        whole = stacked.view(np.dtype((np.void, stacked.itemsize * stacked.shape[1]))).ravel()
        _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    return first, group
