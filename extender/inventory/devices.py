"""Devices: a row each, for as long as the device is published.

A row never changes its owner: a device that vanishes leaves a dead row, and a compaction (when dead rows
outnumber live ones) makes a new table. So whoever kept a row number and the table can still name the device.
Never: which nodes reach a device in what order (see `topology`), or who holds it (see `claims`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from extender.api.resource import Device
from extender.model.device import DeviceFacts, DeviceID

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class DeviceTable:
    """Append-only rows of devices, with the interned values of attributes as lazily made columns."""

    def __init__(self) -> None:
        self.ids: list[DeviceID] = []
        self.facts: list[DeviceFacts] = []
        self.devices: list[Device] = []
        self.row_of: dict[DeviceID, int] = {}
        self.version = 0
        self.dead = 0
        self.changed_at: Int64 = np.zeros(64, np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def upsert(self, driver: str, pool: str, device: Device) -> int:
        """Add or update a device and return its row; an unchanged one keeps its version."""
        device_id = DeviceID(driver, pool, device.name)
        row = self.row_of.get(device_id)
        if row is not None and self.devices[row] == device:
            return row
        self.version += 1
        facts = DeviceFacts(
            driver,
            device.attributes or {},
            device.capacity or {},
            bool(device.allow_multiple_allocations),
        )
        if row is None:
            row = len(self.ids)
            self.ids.append(device_id)
            self.facts.append(facts)
            self.devices.append(device)
            self.row_of[device_id] = row
            if row >= len(self.changed_at):
                self.changed_at = np.concatenate([self.changed_at, np.zeros(row, np.int64)])
        else:
            self.facts[row] = facts
            self.devices[row] = device
        self.changed_at[row] = self.version
        return row

    def forget(self, device_id: DeviceID) -> None:
        """The device is published no more."""
        if self.row_of.pop(device_id, None) is not None:
            self.dead += 1

    def changed_since(self, version: int) -> npt.NDArray[np.intp]:
        """Rows added or changed after `version`, intp[n]."""
        return np.nonzero(self.changed_at[: len(self.ids)] > version)[0]


class CodedColumn:
    """One property of every device as small integers: equal values have equal codes (int32, one a row)."""

    __slots__ = ("_codes", "_of", "_read", "_values", "_version")

    def __init__(self, read: Callable[[DeviceFacts, Device], object]) -> None:
        self._read = read
        self._of: DeviceTable | None = None
        self._version = -1
        self._values: dict[object, int] = {}
        self._codes: Int32 = np.zeros(0, np.int32)

    def over(self, table: DeviceTable) -> Int32:
        """Codes for all rows of `table`, int32[len(table)]; only changed rows are read again."""
        if self._of is not table:
            self._of, self._version, self._codes = table, -1, np.zeros(0, np.int32)
        if self._version != table.version or len(self._codes) < len(table):
            if len(self._codes) < len(table):
                grown = np.zeros(max(len(table), 2 * len(self._codes)), np.int32)
                grown[: len(self._codes)] = self._codes
                self._codes = grown
            else:
                self._codes = self._codes.copy()
            values, facts, devices = self._values, table.facts, table.devices
            for row in table.changed_since(self._version).tolist():
                value = self._read(facts[row], devices[row])
                self._codes[row] = values.setdefault(value, len(values))
            self._version = table.version
        return self._codes[: len(table)]

    def where(self, table: DeviceTable, holds: Callable[[Any], bool]) -> Bool:
        """Rows whose value satisfies `holds`, bool[len(table)]; asked once a distinct value."""
        codes = self.over(table)
        answers = np.fromiter((holds(value) for value in self._values), np.bool_, len(self._values))
        found: Bool = answers[codes] if len(answers) else np.zeros(len(codes), np.bool_)
        return found


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
