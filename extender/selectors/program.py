"""Compiled selectors and how they are made and asked.

Owns `compile`, the program and its verdict; the result's type rules and error texts are
dynamic-resource-allocation cel/compile.go's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from extender.model.device import DeviceFacts
from extender.selectors import types as t
from extender.selectors.ast import Node, children
from extender.selectors.checker import check
from extender.selectors.device import Prepared, prepare
from extender.selectors.environment import Environment
from extender.selectors.errors import Aborted, CelError, CompileError, CostExceeded, Issue, Rejected, Source
from extender.selectors.frame import NO_VARIABLES, Eval, Frame
from extender.selectors.parser import parse
from extender.selectors.plan import build
from extender.selectors.planned import ProgramError
from extender.selectors.reads import Reads, find_reads
from extender.selectors.semver import Semver
from extender.selectors.types import Type
from extender.selectors.validators import validate
from extender.selectors.values import MapValue, Optional, TypeValue, UInt, type_name

_DEEP: Final = 30_000
"""Python frames that compiling and evaluating may nest: depth limits of the language keep far below."""
_SHALLOW: Final = 150
"""Depth of a tree up to which evaluation fits in the interpreter's ordinary limit."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a selector says of a device: `value` without error, or None and the error; what it cost."""

    value: bool | None
    error: str | None
    cost: int


@dataclass(frozen=True, slots=True)
class Value:
    """What a derived attribute yields: a bool, int, str, Semver or a list of one of them, or an error."""

    value: Any
    error: str | None
    cost: int


class Program:
    """A compiled selector. Stateless but for remembered verdict objects; safe to share.

    text, environment: what it was made from. result: the static type. reads: all that a verdict depends on.
    root: the checked tree.
    """

    __slots__ = (
        "_deep",
        "_limit",
        "_lists",
        "_no",
        "_run",
        "_slots",
        "_yes",
        "environment",
        "reads",
        "result",
        "root",
        "text",
    )

    def __init__(self, text: str, environment: Environment, root: Node, run: Eval, slots: int) -> None:
        self.text = text
        self.environment = environment
        self.root = root
        self.result: Type = root.type
        self.reads: Reads = find_reads(root)
        self._run = run
        self._slots = slots
        self._limit = environment.cost_limit
        self._lists = environment.list_values
        self._deep = _depth(root) > _SHALLOW
        self._yes: dict[int, Verdict] = {}
        self._no: dict[int, Verdict] = {}

    def evaluate(  # noqa: PLR0911 - one return for each kind of end
        self, device: DeviceFacts | Prepared
    ) -> Verdict:
        """Evaluate against a device; a `Prepared` one is quicker. Never raises."""
        if type(device) is not Prepared:
            device = prepare(device)  # type: ignore[arg-type]  # type() narrows for speed
        fault = device.fault if self._lists else device.list_fault
        if fault is not None:
            return Verdict(None, fault, 0)
        slots = self._slots
        frame = Frame(device, self._limit, [None] * slots if slots else NO_VARIABLES)
        try:
            value = _deeply(self._run, frame) if self._deep else self._run(frame)
        except CelError as error:
            return Verdict(None, str(error), self._limit - frame.left)
        except CostExceeded as error:
            return Verdict(None, str(error), error.cost)
        except Aborted as error:
            return Verdict(None, str(error), self._limit - frame.left)
        except Exception as error:  # noqa: BLE001 - upstream turns panics into this error as well
            return Verdict(None, f"internal error: {error}", self._limit - frame.left)
        cost = self._limit - frame.left
        if type(value) is Optional and value.present:
            value = value.value
        if type(value) is not bool:
            return Verdict(None, _not_bool(value), cost)
        known = self._yes if value else self._no
        verdict = known.get(cost)
        if verdict is None:
            verdict = known[cost] = Verdict(value, None, cost)
        return verdict

    def evaluate_value(self, device: DeviceFacts | Prepared) -> Value:
        """Evaluate a derived attribute (compiled with `derived`); never raises."""
        prepared = device if isinstance(device, Prepared) else prepare(device)
        fault = prepared.fault if self._lists else prepared.list_fault
        if fault is not None:
            return Value(None, fault, 0)
        frame = Frame(prepared, self._limit, [None] * self._slots)
        try:
            value = _deeply(self._run, frame)
        except CostExceeded as error:
            return Value(None, str(error), error.cost)
        except (CelError, Aborted) as error:
            return Value(None, str(error), self._limit - frame.left)
        except Exception as error:  # noqa: BLE001 - upstream turns panics into this error as well
            return Value(None, f"internal error: {error}", self._limit - frame.left)
        problem = _not_attribute(value)
        return Value(None if problem else value, problem, self._limit - frame.left)


def compile(text: str, environment: Environment | None = None) -> Program | CompileError:  # noqa: A001 - the seam's name; a builtin of that name is not used here
    """Compile a selector; never raises, whatever the text."""
    environment = environment or Environment()
    with deep_stack():
        source = Source(text)
        try:
            root = parse(source, environment)
            issues = check(source, root, environment) or validate(source, root)
            if issues:
                return source.reject(issues)
            wrong = _wrong_result(root.type, environment)
            if wrong is not None:
                return CompileError(wrong, 1, 1, (Issue(1, 0, wrong),))
            run, slots = build(root, environment)
            return Program(text, environment, root, run, slots)
        except Rejected as rejected:
            return source.reject(rejected.issues)
        except (ProgramError, Aborted) as error:  # where upstream panics, no program is made here
            message = f"program instantiation failed: {error}"
            return CompileError(message, 1, 1, (Issue(1, 0, message),))
        except Exception as error:  # noqa: BLE001 - a fault here refuses one selector and stops nothing else
            deep = isinstance(error, (RecursionError, MemoryError))
            message = "expression is too deep" if deep else f"internal error: {error!r}"
            return CompileError(message, 1, 1, (Issue(1, 0, message),))


@contextmanager
def deep_stack() -> Iterator[None]:
    """Let Python frames nest as deep as the language's own limits allow; they need no machine stack."""
    before = sys.getrecursionlimit()
    if before >= _DEEP:
        yield
        return
    sys.setrecursionlimit(_DEEP)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _deeply(run: Eval, frame: Frame) -> Any:
    with deep_stack():
        return run(frame)


def _depth(root: Node) -> int:
    deepest = 0
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in children(node))
    return deepest


def _wrong_result(result: Type, environment: Environment) -> str | None:
    attribute = t.DYN if environment.dynamic_attributes else t.ANY
    if not environment.derived:
        if result in {t.BOOL, attribute}:
            return None
        return f"must evaluate to bool or the unknown type, not {t.declared(result)}"
    scalars = {t.BOOL, t.INT, t.STRING, t.ANY, t.DYN, t.SEMVER}
    if result in scalars:
        return None
    head = "must evaluate to a primitive scalar (string, integer, boolean, semver)"
    if not environment.allows_lists:
        return f"{head}, not {t.declared(result)}"
    if result.kind == "list" and result.params[0] in scalars:
        return None
    return f"{head} or a list of these scalars, not {t.declared(result)}"


def _not_bool(value: Any) -> str:
    """The text of a result that is no bool, by the value's own conversion upstream."""
    name = type_name(value)
    kind = type(value)
    if kind in {int, UInt}:
        reason = f"unsupported type conversion from '{name}' to bool"
    elif kind is str:
        reason = "unsupported native conversion from string to 'bool'"
    elif kind in {list, MapValue}:
        reason = f"type conversion error from {name} to 'bool'"
    elif kind in {float, bytes}:
        reason = f"type conversion error from {name.capitalize()} to 'bool'"
    elif kind is TypeValue:
        reason = "type conversion not supported for 'type'"
    elif kind is Optional:
        reason = "optional.none() dereference"
    else:
        short = name.rpartition(".")[2].removeprefix("Named")
        reason = f"type conversion error from '{short}' to 'bool'"
    return f"CEL result of type {name} could not be converted to bool: {reason}"


def _not_attribute(value: Any) -> str | None:
    allowed = (bool, int, str, Semver)
    if type(value) in allowed:
        return None
    if type(value) is not list:
        return f"unsupported CEL return type: {type_name(value)}"
    if not value:
        return None
    kind = type(value[0])
    if kind not in allowed:
        return f"unsupported list element type: {type_name(value[0])}"
    for place, item in enumerate(value):
        if type(item) is not kind:
            return (
                f"expected list element at index {place} to be {type_name(value[0])}, got {type_name(item)}"
            )
    return None
