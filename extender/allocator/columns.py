"""Selectors over all devices at once: a verdict once per distinct tuple of the values that it reads.

Also the door through which the search asks for single verdicts. Never: CEL itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from extender.allocator.evaluator import SelectorFault
from extender.api.base import Wire
from extender.api.resource import Device, DeviceAttribute
from extender.inventory.devices import CodedColumn, DeviceTable, group_rows
from extender.inventory.topology import Topology
from extender.model.device import DeviceFacts
from extender.selectors import CompileError, Environment, Program
from extender.selectors import compile as compile_selector
from extender.selectors.device import qualified
from extender.selectors.semver import Semver

Int8 = npt.NDArray[np.int8]

_KEPT = 512
_UNIQUE = 4096  # distinct key tuples remembered for one selector

T = TypeVar("T")
Reader = Callable[[DeviceFacts, Device], object]


@dataclass(eq=False, slots=True)
class _Verdicts:
    """Verdicts of one program: by key (codes of its columns), and as a column over a table's rows so far."""

    table: DeviceTable
    column: Int8 = field(default_factory=lambda: np.zeros(0, np.int8))
    by_key: dict[tuple[int, ...], int] = field(default_factory=dict)


class SelectorColumns:
    """Programs by text, the columns that they read, and a column of verdicts for each."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._programs: OrderedDict[str, Program | CompileError] = OrderedDict()
        self._verdicts: OrderedDict[str, _Verdicts] = OrderedDict()
        self._columns: OrderedDict[str, CodedColumn] = OrderedDict()

    def program(self, expression: str) -> Program | CompileError:
        """The compiled expression."""
        found = self._programs.get(expression)
        if found is None:
            found = compile_selector(expression, self._environment)
            _keep(self._programs, expression, found)
        return found

    def over(self, expression: str, topology: Topology) -> Int8:
        """Verdicts for all rows, int8[rows]: 1 match, 0 none, -1 an error or no compilation."""
        rows = topology.rows
        program = self.program(expression)
        if isinstance(program, CompileError):
            return np.full(rows, -1, np.int8)
        table = topology.table
        kept = self._verdicts.get(expression)
        if kept is None or kept.table is not table:
            kept = _Verdicts(table)
            _keep(self._verdicts, expression, kept)
        if len(kept.column) < len(table):
            self._refresh(program, kept)
        return kept.column[:rows]

    def relevant(self, expression: str) -> frozenset[str] | None:
        """Attributes ("domain/id") that the expression can read; None when any attribute may matter."""
        program = self.program(expression)
        if isinstance(program, CompileError):
            return frozenset()
        reads = program.reads
        if reads.everything or reads.attribute_ids or reads.attribute_values or reads.attribute_domains:
            return None
        return reads.attributes

    # ---- extender.allocator.evaluator.SelectorEvaluator

    def matches(self, expression: str, facts: DeviceFacts) -> bool | SelectorFault:
        """The verdict for one device."""
        program = self.program(expression)
        if isinstance(program, CompileError):
            return SelectorFault("compile", program.message)
        verdict = program.evaluate(facts)
        if verdict.value is None:
            return SelectorFault("runtime", verdict.error or "")
        return verdict.value

    def derive(self, expression: str, facts: DeviceFacts) -> DeviceAttribute | SelectorFault:
        """A derived attribute of one device (KEP-6080, alpha)."""
        program = compile_selector(expression, replace(self._environment, derived=True))
        if isinstance(program, CompileError):
            return SelectorFault("compile", program.message)
        result = program.evaluate_value(facts)
        return (
            SelectorFault("runtime", result.error) if result.error is not None else _attribute(result.value)
        )

    def _refresh(self, program: Program, kept: _Verdicts) -> None:
        table, known = kept.table, len(kept.column)
        columns = [self._column(name).over(table)[known:] for name in program.reads.columns]
        first, group = group_rows(columns)
        keys = np.stack([column[first] for column in columns], axis=1).tolist()
        if len(kept.by_key) > _UNIQUE:
            kept.by_key.clear()
        found = np.zeros(len(first), np.int8)
        for at, (row, codes) in enumerate(zip(first.tolist(), keys, strict=True)):
            key = tuple(codes)
            code = kept.by_key.get(key)
            if code is None:
                value = program.evaluate(table.facts[known + row]).value
                code = kept.by_key[key] = -1 if value is None else int(value)
            found[at] = code
        kept.column = np.concatenate([kept.column, found[group]])

    def _column(self, name: str) -> CodedColumn:
        column = self._columns.get(name)
        if column is None:
            column = CodedColumn(_reader(name))
            _keep(self._columns, name, column)
        return column


def _keep(kept: OrderedDict[str, T], key: str, value: T) -> None:
    kept[key] = value
    if len(kept) > _KEPT:
        kept.popitem(last=False)


def _reader(column: str) -> Reader:
    """Reads one key column (`extender.selectors.reads.Reads.columns`) from what a device publishes."""
    kind, _, rest = column.partition("/")
    domain, _, name = rest.partition("/")
    readers: dict[str, Reader] = {
        "faults": lambda facts, _: _fallible(facts),
        "everything": lambda facts, _: msgspec.json.encode(facts),
        "driver": lambda facts, _: facts.driver,
        "allowMultipleAllocations": lambda facts, _: facts.allow_multiple_allocations,
        "attributes": _value_reader(lambda facts: facts.attributes, domain, name),
        "capacity": _value_reader(lambda facts: facts.capacity, domain, name),
        "attributeIds": lambda facts, _: tuple(_of_domain(facts.attributes, facts.driver, rest)),
        "capacityIds": lambda facts, _: tuple(_of_domain(facts.capacity, facts.driver, rest)),
        "attributeValues": lambda facts, _: _encoded(_of_domain(facts.attributes, facts.driver, rest)),
        "capacityValues": lambda facts, _: _encoded(_of_domain(facts.capacity, facts.driver, rest)),
        "attributeDomains": lambda facts, _: tuple(_domains(facts.attributes, facts.driver)),
        "capacityDomains": lambda facts, _: tuple(_domains(facts.capacity, facts.driver)),
    }
    return readers[kind]


def _value_reader(part: Callable[[DeviceFacts], Mapping[str, Wire]], domain: str, name: str) -> Reader:
    """Reads one value by domain and id; the driver is the default domain, a qualified name comes first."""
    qualified_name = f"{domain}/{name}"
    encode = msgspec.json.Encoder().encode

    def read(facts: DeviceFacts, _: Device) -> bytes | None:
        published = part(facts)
        found = published.get(qualified_name)
        if found is None and facts.driver == domain:
            found = published.get(name)
        return None if found is None else encode(found)

    return read


def _of_domain(published: Mapping[str, Wire], driver: str, domain: str) -> dict[str, Wire]:
    return {
        id_: value
        for name, value in published.items()
        for of, id_ in (qualified(name, driver),)
        if of == domain
    }


def _domains(published: Mapping[str, Wire], driver: str) -> dict[str, None]:
    return dict.fromkeys(qualified(name, driver)[0] for name in published)


def _encoded(values: Mapping[str, Wire]) -> bytes:
    return msgspec.json.encode(values)


def _fallible(facts: DeviceFacts) -> tuple[object, ...]:
    """What can make a device unreadable whatever is asked: versions, lists, attributes without a value."""
    doubtful = [
        (name, value.version, tuple(value.versions or ()), value == DeviceAttribute())
        for name, value in facts.attributes.items()
        if value.string is None and value.int is None and value.bool is None
    ]
    return (*doubtful, *((name, str(held.value)) for name, held in facts.capacity.items()))


def _attribute(value: object) -> DeviceAttribute:
    """A derived value as an attribute."""
    if isinstance(value, list):
        if value and isinstance(value[0], bool):
            return DeviceAttribute(bools=value)
        if value and isinstance(value[0], Semver):
            return DeviceAttribute(versions=[str(one) for one in value])
        return (
            DeviceAttribute(ints=value)
            if value and isinstance(value[0], int)
            else DeviceAttribute(strings=value)
        )
    if isinstance(value, bool):
        return DeviceAttribute(bool=value)
    if isinstance(value, int):
        return DeviceAttribute(int=value)
    return (
        DeviceAttribute(version=str(value))
        if isinstance(value, Semver)
        else DeviceAttribute(string=str(value))
    )
