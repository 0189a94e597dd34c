"""Conformance cases: selectors with the verdict and cost of the real evaluator.

Owns reading the format, the environment that a case names and the comparison. Never: files and printing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from extender.api.resource import DeviceAttribute, DeviceCapacity
from extender.model.device import DeviceFacts
from extender.selectors.environment import Environment
from extender.selectors.errors import CompileError
from extender.selectors.program import Program, compile  # noqa: A004 - the seam's name

COMPILE_ERROR = "compile error"
RUNTIME_ERROR = "runtime error"
VERDICTS = ("true", "false", COMPILE_ERROR, RUNTIME_ERROR)
_FIELDS = {"int": int, "bool": bool, "string": str, "version": str}
_LISTS = {"ints": int, "bools": bool, "strings": str, "versions": str}
_SHUFFLES = 400
"""Orders of a map that are tried at most for a cost that depends on the order."""


class CaseError(ValueError):
    """A case is not of the format. The message names the case and the field."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was computed for one case.

    got: one of VERDICTS. cost: what an evaluation costs; `cost_order` is "published", or "other" when the
    recorded cost is that of another order of visiting a map, which upstream leaves to chance. version: of the
    Kubernetes release, for verdicts that differ by release.
    """

    id: str
    version: str
    expect: str
    got: str
    cost: int
    expect_cost: int | None
    cost_order: str
    error: str | None
    ok: bool
    why: str

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON takes it."""
        return asdict(self)


def run_cases(document: object, *, with_cost: bool) -> list[Record]:
    """Run all cases of a parsed document; raise CaseError for what is no such document."""
    cases = document.get("cases") if isinstance(document, Mapping) else document
    if not isinstance(cases, Sequence) or isinstance(cases, str):
        raise CaseError("cases: expected a list")
    return [record for place, case in enumerate(cases) for record in _run(case, place, with_cost=with_cost)]


def _run(case: object, place: int, *, with_cost: bool) -> Iterator[Record]:
    if not isinstance(case, Mapping):
        raise CaseError(f"cases[{place}]: expected a mapping")
    name = str(case.get("id", f"cases[{place}]"))
    expression, expect = case.get("expression"), case.get("expect")
    if not isinstance(expression, str):
        raise CaseError(f"{name}: expression: expected a text")
    if expect not in VERDICTS:
        raise CaseError(f"{name}: expect: expected one of {', '.join(VERDICTS)}")
    if type(case.get("cost")) not in {int, type(None)}:
        raise CaseError(f"{name}: cost: expected a whole number")
    facts = _facts(name, case.get("device") or {})
    main = environment_of(case)
    yield _record(case, name, str(expect), main, facts, with_cost=with_cost)
    others = case.get("other_versions") or {}
    if not isinstance(others, Mapping):
        raise CaseError(f"{name}: other_versions: expected a mapping")
    for version, verdict in others.items():
        if verdict not in VERDICTS:
            raise CaseError(f"{name}: other_versions: expected one of {', '.join(VERDICTS)}")
        older = Environment(version=_version(name, version), stored=main.stored)
        yield _record({"expression": expression}, name, str(verdict), older, facts, with_cost=False)


def environment_of(case: Mapping[str, Any]) -> Environment:
    """The environment that a case names: 1.37's stored expressions unless it says otherwise."""
    gates = case.get("gates") or {}
    if not isinstance(gates, Mapping):
        raise CaseError(f"{case.get('id')}: gates: expected a mapping")
    return Environment(
        stored=case.get("env", "StoredExpressions") != "NewExpressions",
        list_attributes=bool(gates.get("DRAListTypeAttributes", False)),
        consumable_capacity=bool(gates.get("DRAConsumableCapacity", True)),
    )


def _version(name: str, text: object) -> tuple[int, int]:
    major, _, minor = str(text).removeprefix("v").partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise CaseError(f"{name}: other_versions: {text!r} is no version")
    return int(major), int(minor)


def _facts(name: str, device: object) -> DeviceFacts:
    if not isinstance(device, Mapping):
        raise CaseError(f"{name}: device: expected a mapping")
    attributes = device.get("attributes") or {}
    capacity = device.get("capacity") or {}
    if not isinstance(attributes, Mapping) or not isinstance(capacity, Mapping):
        raise CaseError(f"{name}: device: attributes and capacity are mappings")
    return DeviceFacts(
        driver=str(device.get("driver", "")),
        attributes={str(key): _attribute(f"{name}: {key}", value) for key, value in attributes.items()},
        capacity={str(key): _capacity(f"{name}: {key}", value) for key, value in capacity.items()},
        allow_multiple_allocations=bool(device.get("allowMultipleAllocations", False)),
    )


def _attribute(where: str, value: object) -> DeviceAttribute:
    if not isinstance(value, Mapping) or not set(value) <= _FIELDS.keys() | _LISTS.keys():
        raise CaseError(f"{where}: expected one of {', '.join([*_FIELDS, *_LISTS])}")
    return DeviceAttribute(**{key: _plain(f"{where}.{key}", key, item) for key, item in value.items()})


def _plain(where: str, key: str, item: object) -> Any:
    if key in _FIELDS:
        return _scalar(where, _FIELDS[key], item)
    if not isinstance(item, list):
        raise CaseError(f"{where}: expected a list")
    return [_scalar(where, _LISTS[key], one) for one in item]


def _scalar(where: str, kind: type, item: object) -> Any:
    """The value; YAML reads some texts as numbers, which is put right here."""
    if type(item) is kind:
        return item
    if kind is not str or type(item) not in {int, float}:
        raise CaseError(f"{where}: expected {kind.__name__}, not {item!r}")
    return str(item)


def _capacity(where: str, value: object) -> DeviceCapacity:
    held = value.get("value", "0") if isinstance(value, Mapping) else value
    return DeviceCapacity(value=_scalar(where, str, held))


def _record(
    case: Mapping[str, Any],
    name: str,
    expect: str,
    environment: Environment,
    facts: DeviceFacts,
    *,
    with_cost: bool,
) -> Record:
    program = compile(case["expression"], environment)
    got, error, cost = _outcome(program, facts)
    contains = case.get("error_contains")
    wanted = case.get("cost")
    why: list[str] = []
    order = "published"
    if got != expect:
        why.append(f"verdict {got}, expected {expect}")
    if contains and str(contains) not in (error or ""):
        why.append(f"error does not contain {contains!r}")
    if with_cost and wanted is not None and got == expect and cost != wanted:
        if isinstance(program, Program) and _in_another_order(program, facts, expect, wanted):
            cost, order = wanted, "other"
        else:
            why.append(f"cost {cost}, expected {wanted}")
    return Record(
        id=name,
        version=".".join(map(str, environment.version)),
        expect=expect,
        got=got,
        cost=cost,
        expect_cost=wanted,
        cost_order=order,
        error=error,
        ok=not why,
        why="; ".join(why),
    )


def _outcome(program: Program | CompileError, facts: DeviceFacts) -> tuple[str, str | None, int]:
    if isinstance(program, CompileError):
        return COMPILE_ERROR, program.message, 0
    verdict = program.evaluate(facts)
    if verdict.error is not None:
        return RUNTIME_ERROR, verdict.error, verdict.cost
    return ("true" if verdict.value else "false"), None, verdict.cost


def _in_another_order(program: Program, facts: DeviceFacts, expect: str, cost: int) -> bool:
    """Whether visiting the device's maps in another order gives this verdict at this cost.

    Upstream visits maps in random order, so a loop that stops early has no one cost. Each name is tried at
    each place, which reaches every place to stop at.
    """
    reads = program.reads
    loops = (
        reads.attribute_ids | reads.capacity_ids | reads.attribute_values | reads.capacity_values
        or reads.attribute_domains
        or reads.capacity_domains
        or reads.everything
    )
    if not loops:
        return False
    return any(_outcome(program, other)[::2] == (expect, cost) for other in _orders(facts))


def _orders(facts: DeviceFacts) -> Iterator[DeviceFacts]:
    tried = 0
    for field in ("attributes", "capacity"):
        published = dict(getattr(facts, field))
        names = list(published)
        for name in names:
            rest = [other for other in names if other != name]
            for place in range(len(names)):
                tried += 1
                if tried > _SHUFFLES:
                    return
                order = [*rest[:place], name, *rest[place:]]
                moved = {key: published[key] for key in order}
                yield DeviceFacts(
                    driver=facts.driver,
                    attributes=moved if field == "attributes" else facts.attributes,
                    capacity=moved if field == "capacity" else facts.capacity,
                    allow_multiple_allocations=facts.allow_multiple_allocations,
                )
