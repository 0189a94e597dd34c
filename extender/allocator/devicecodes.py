"""Devices as numbers: equal where a claim can't tell what was published apart.

What a claim can see of a device is what its selectors and constraints read, and all that is no attribute.
Numbers are never given twice, so answers that were kept by them stay right. Never: whether a device is free.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count

import msgspec
import numpy as np

from extender.api.resource import Device, DeviceClass, ResourceClaim
from extender.inventory.devices import CodedColumn, DeviceTable, Int32, group_rows
from extender.inventory.topology import Topology
from extender.model.device import DeviceFacts

_COLUMNS = 64

Relevant = Callable[[str], frozenset[str] | None]
"""The attributes ("domain/id") that an expression can read; None: any of them."""


@dataclass(frozen=True, eq=False, slots=True)
class _Combined:
    """Numbers for several columns together, int32[rows of the table so far]; `known` has them by codes."""

    table: DeviceTable
    codes: Int32
    known: dict[tuple[int, ...], int]


class DeviceCodes:
    """Numbers of devices by the attributes that matter; columns are kept and only new rows are read."""

    def __init__(self, relevant: Relevant) -> None:
        self._relevant = relevant
        self._contents = CodedColumn(_content)
        self._attributes: OrderedDict[str, CodedColumn] = OrderedDict()
        self._combined: OrderedDict[tuple[str, ...], _Combined] = OrderedDict()
        self._numbers = count()

    def over(
        self, claims: tuple[ResourceClaim, ...], classes: Mapping[str, DeviceClass], topology: Topology
    ) -> Int32:
        """Numbers of all rows for these claims, int32[rows]."""
        table, rows = topology.table, topology.rows
        names = tuple(self._names(claims, classes))
        columns = [self._contents.over(table), *(self._column(name).over(table) for name in names)]
        kept = self._combined.get(names)
        if kept is None or kept.table is not table:
            kept = _Combined(table, np.zeros(0, np.int32), {})
        if len(kept.codes) < len(table):
            kept = self._combined[names] = self._extended(kept, [c[len(kept.codes) :] for c in columns])
            if len(self._combined) > _COLUMNS:
                self._combined.popitem(last=False)
        return kept.codes[:rows]

    def _extended(self, kept: _Combined, columns: list[Int32]) -> _Combined:
        """With the rows that were added since."""
        first, group = group_rows(columns)
        distinct = np.stack([column[first] for column in columns], axis=1)
        known = kept.known
        numbers = np.zeros(len(first), np.int32)
        for at, codes in enumerate(distinct.tolist()):
            key = tuple(codes)
            if key not in known:
                known[key] = next(self._numbers)
            numbers[at] = known[key]
        return _Combined(kept.table, np.concatenate([kept.codes, numbers[group]]), known)

    def _names(self, claims: tuple[ResourceClaim, ...], classes: Mapping[str, DeviceClass]) -> list[str]:
        """Attributes that can matter to the claims; [""] stands for all of them."""
        names: set[str] = set()
        for expression in _expressions(claims, classes):
            reads = self._relevant(expression)
            if reads is None:
                return [""]
            names |= reads
        for claim in claims:
            for constraint in claim.spec.devices.constraints or ():
                names.update(filter(None, (constraint.match_attribute, constraint.distinct_attribute)))
        return sorted(names)

    def _column(self, name: str) -> CodedColumn:
        column = self._attributes.get(name)
        if column is None:
            column = self._attributes[name] = CodedColumn(_reader(name))
            self._combined.clear()  # the same column made anew numbers its values anew
            if len(self._attributes) > _COLUMNS:
                self._attributes.popitem(last=False)
        else:
            self._attributes.move_to_end(name)
        return column


def _content(facts: DeviceFacts, device: Device) -> bytes:
    """All of a device that is not an attribute or its name."""
    return msgspec.json.encode(
        (
            facts.driver,
            device.capacity,
            device.consumes_counters,
            device.taints,
            device.allow_multiple_allocations,
            device.binds_to_node,
            device.binding_conditions,
            device.binding_failure_conditions,
            device.node_name is not None,
            device.node_selector,
            device.all_nodes,
        )
    )


def _reader(name: str) -> Callable[[DeviceFacts, Device], bytes]:
    """Read one attribute, by its full name or the bare one in its driver's domain; "" reads them all."""
    domain, _, bare = name.rpartition("/")

    def read(facts: DeviceFacts, _: Device) -> bytes:
        if not name:
            return msgspec.json.encode(facts.attributes, order="sorted")
        value = facts.attributes.get(name)
        if value is None and domain in {"", facts.driver}:
            value = facts.attributes.get(bare)
        return b"" if value is None else msgspec.json.encode(value)

    return read


def _expressions(claims: Iterable[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Iterable[str]:
    for claim in claims:
        for name in class_names(claim):
            found = classes.get(name)
            for selector in (found.spec.selectors if found is not None else None) or ():
                if selector.cel is not None:
                    yield selector.cel.expression
        for request in claim.spec.devices.requests or ():
            for form in (request.exactly, *(request.first_available or ())):
                if form is None:
                    continue
                for selector in form.selectors or ():
                    if selector.cel is not None:
                        yield selector.cel.expression
                for derived in form.derived_attributes or ():
                    yield derived.expression


def class_names(claim: ResourceClaim) -> Iterable[str]:
    """Classes that the requests of a claim name, every alternative's too."""
    for request in claim.spec.devices.requests or ():
        for form in (request.exactly, *(request.first_available or ())):
            if form is not None:
                yield form.device_class_name
