"""Why a device does not match: the comparisons that decided, what they saw, what would match.

Owns the analysis behind `berth selectors check`. It evaluates parts of a checked tree; verdicts are the
program's alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extender.api.quantity import Quantity
from extender.selectors.ast import Call, Fold, Ident, Literal, Node, Select, children
from extender.selectors.device import Prepared
from extender.selectors.environment import Environment
from extender.selectors.errors import Aborted, CelError, CostExceeded
from extender.selectors.frame import Frame
from extender.selectors.plan import build
from extender.selectors.planned import ProgramError
from extender.selectors.program import Program, deep_stack
from extender.selectors.semver import Semver
from extender.selectors.unparse import is_name, literal, text
from extender.selectors.values import MapValue, Optional, show

_MISSING: Final = "no such key: "
_ORDERS: Final = frozenset({"isGreaterThan", "isLessThan", "compareTo"})
_RELATIONS: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_UNITS: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50}


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison that kept a device from matching.

    comparison: its text. outcome: "false" or "error". seen: parts of it and their values on this device.
    error: the run-time error. missing: the path that the device does not have. nearest: the closest value,
    among the devices given, with which the comparison holds. gap: by how much a quantity or number misses
    what it is compared with. hint: how to write the selector so that it does not fail.
    """

    comparison: str
    outcome: str
    seen: tuple[tuple[str, str], ...]
    error: str | None = None
    missing: str | None = None
    nearest: str | None = None
    gap: str | None = None
    hint: str | None = None


def explain(program: Program, device: Prepared, fleet: Sequence[Prepared] = ()) -> tuple[Finding, ...]:
    """Name the comparisons that decided against a device; nothing when it matches.

    fleet: devices among which the nearest matching value is looked for. Never raises.
    """
    verdict = program.evaluate(device)
    if verdict.value is True:
        return ()
    tracer = _Tracer(program.environment)
    with deep_stack():
        leaves = list(tracer.deciding(program.root, device, wanted=True))
        return tuple(tracer.finding(leaf, device, fleet, wanted=wanted) for leaf, wanted in leaves)


class _Tracer:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._built: dict[int, tuple[Any, int] | None] = {}

    def _value(self, node: Node, device: Prepared) -> Any:
        """The value of a part; a CelError when it fails."""
        if id(node) not in self._built:
            try:
                self._built[id(node)] = build(node, self._environment)
            except (ProgramError, KeyError):
                self._built[id(node)] = None
        built = self._built[id(node)]
        if built is None:
            return CelError("can't be evaluated alone")
        run, slots = built
        try:
            return run(Frame(device, self._environment.cost_limit, [None] * slots))
        except CelError as error:
            return error
        except (CostExceeded, Aborted) as error:
            return CelError(str(error))

    def deciding(self, node: Node, device: Prepared, *, wanted: bool) -> Iterator[tuple[Node, bool]]:
        """The leaves that keep a node from being as wanted, with what each should have been."""
        value = self._value(node, device)
        if value is wanted:
            return
        if isinstance(node, Call) and node.function == "!_":
            yield from self.deciding(node.args[0], device, wanted=not wanted)
        elif isinstance(node, Call) and node.function in {"_&&_", "_||_"}:
            values = [self._value(arg, device) for arg in node.args]
            absorbed = node.function == "_&&_" and any(value is False for value in values)
            for arg, seen in zip(node.args, values, strict=True):
                if not (absorbed and isinstance(seen, CelError)):
                    yield from self.deciding(arg, device, wanted=wanted)
        elif isinstance(node, Call) and node.function == "_?_:_":
            condition = self._value(node.args[0], device)
            if isinstance(condition, bool):
                chosen = node.args[1 if condition else 2]
                if isinstance(chosen, Literal):
                    yield from self.deciding(node.args[0], device, wanted=not condition)
                else:
                    yield from self.deciding(chosen, device, wanted=wanted)
            else:
                yield node.args[0], True
        else:
            yield node, wanted

    def finding(self, leaf: Node, device: Prepared, fleet: Sequence[Prepared], *, wanted: bool) -> Finding:
        """Say what a leaf saw."""
        value = self._value(leaf, device)
        error = str(value) if isinstance(value, CelError) else None
        seen = tuple(
            (text(part), _shown(self._value(part, device)))
            for part in _operands(leaf)
            if not isinstance(part, Literal) and not isinstance(self._value(part, device), CelError)
        )
        missing = self._missing(leaf, device) if error is not None and error.startswith(_MISSING) else None
        return Finding(
            comparison=text(leaf) if wanted else f"!({text(leaf)})",
            outcome="error" if error is not None else "false",
            seen=seen,
            error=error,
            missing=None if missing is None else text(missing),
            nearest=self._nearest(leaf, device, fleet, wanted=wanted),
            gap=None if error is not None else self._gap(leaf, device),
            hint=None if missing is None else _hint(leaf, missing),
        )

    def _gap(self, leaf: Node, device: Prepared) -> str | None:
        """How far the compared value is from the wanted one, as `81559Mi < 80Gi = 81920Mi, short 361Mi`."""
        pair = _compared(leaf)
        if pair is None:
            return None
        own, wanted = (self._value(part, device) for part in pair)
        if isinstance(own, Quantity) and isinstance(wanted, Quantity):
            return _quantity_gap(own, wanted)
        if not all(
            isinstance(value, (int, float)) and not isinstance(value, bool) for value in (own, wanted)
        ):
            return None
        if own == wanted:
            return f"equals {show(wanted)}"
        sign, word = ("<", "short") if own < wanted else (">", "over by")
        return f"{show(own)} {sign} {show(wanted)}, {word} {show(abs(wanted - own))}"

    def _missing(self, leaf: Node, device: Prepared) -> Node | None:
        """The shortest path into the device that fails."""
        stack = [leaf]
        found: Node | None = None
        while stack:
            node = stack.pop()
            if _is_path(node) and isinstance(self._value(node, device), CelError):
                found = node
            if not isinstance(node, Fold):
                stack.extend(children(node))
        return found

    def _nearest(
        self, leaf: Node, device: Prepared, fleet: Sequence[Prepared], *, wanted: bool
    ) -> str | None:
        paths = [part for part in _operands(leaf) if _is_path(part)]
        if len(paths) != 1:
            return None
        path = paths[0]
        own = self._value(path, device)
        matching = (self._value(path, other) for other in fleet if self._value(leaf, other) is wanted)
        found = [value for value in matching if not isinstance(value, CelError)]
        if not found:
            return None
        return _shown(min(found, key=lambda value: _distance(own, value)))


def _operands(leaf: Node) -> list[Node]:
    """The parts of a comparison whose values matter to a reader."""
    pair = _compared(leaf)
    if pair is not None:
        return list(pair)
    if isinstance(leaf, Fold):
        return [leaf.range]
    if isinstance(leaf, Select) and leaf.test:
        return [leaf.operand]
    if _is_path(leaf):
        return [leaf]
    return children(leaf)


def _compared(leaf: Node) -> tuple[Node, Node] | None:
    """The value and what it is compared with, the device's first."""
    if not isinstance(leaf, Call):
        return None
    pair: tuple[Node, Node] | None = None
    if leaf.function in _ORDERS and leaf.target is not None and len(leaf.args) == 1:
        pair = (leaf.target, leaf.args[0])
    elif leaf.function in _RELATIONS and len(leaf.args) == 2:
        left, right = leaf.args
        nested = left if isinstance(left, Call) and left.function == "compareTo" else right
        if isinstance(nested, Call) and nested.function == "compareTo":
            return _compared(nested)
        pair = (left, right)
    if pair is None or not any(map(_is_path, pair)):
        return None
    return pair if _is_path(pair[0]) else (pair[1], pair[0])


def _quantity_gap(own: Quantity, wanted: Quantity) -> str:
    order = own.cmp(wanted)
    if order == 0:
        return f"equals {wanted}"
    sign, word = ("<", "short") if order < 0 else (">", "over by")
    missing = wanted.sub(own) if order < 0 else own.sub(wanted)
    same = _in_unit(wanted, own)
    return f"{own} {sign} {wanted}{f' = {same}' if same else ''}, {word} {missing}"


def _in_unit(quantity: Quantity, model: Quantity) -> str | None:
    """The quantity in the binary unit of another, if that is a different one and the number is whole."""
    unit = str(model)[-2:]
    number, fits = quantity.as_int64()
    if unit not in _UNITS or not fits or str(quantity).endswith(unit) or number % _UNITS[unit]:
        return None
    return f"{number // _UNITS[unit]}{unit}"


def _is_path(node: Node) -> bool:
    """A path into the device with constant keys."""
    while True:
        if isinstance(node, Select) and not node.test:
            node = node.operand
        elif isinstance(node, Call) and node.function == "_[_]" and isinstance(node.args[1], Literal):
            node = node.args[0]
        else:
            return isinstance(node, Ident) and node.name.removeprefix(".") == "device"


def _hint(leaf: Node, missing: Node) -> str:
    path = text(missing)
    if isinstance(missing, Select) and is_name(missing.field):
        optional = f"{text(missing.operand)}.?{missing.field}"
        return f"write has({path}) && {text(leaf)}, or {optional}.orValue(...)"
    if isinstance(missing, Call):
        target, key = missing.args
        assert isinstance(key, Literal)
        shown = literal(key.value)
        return f"write {shown} in {text(target)} && {text(leaf)}, or {text(target)}[?{shown}].orValue(...)"
    return f"test that {path} is there first"


def _shown(value: Any) -> str:
    if isinstance(value, (Quantity, Semver)):
        return str(value)
    if isinstance(value, MapValue):
        return "{" + ", ".join(f"{show(k)}: {_shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_shown(v) for v in value) + "]"
    if isinstance(value, Optional):
        return f"optional.of({_shown(value.value)})" if value.present else "optional.none()"
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return literal(value)
    return show(value)


def _distance(own: Any, other: Any) -> float:
    """How far two values are apart; unlike types are farthest."""
    if isinstance(own, Quantity) and isinstance(other, Quantity):
        return abs(own.sub(other).as_approximate_float())
    if isinstance(own, Semver) and isinstance(other, Semver):
        mine, theirs = (own.major, own.minor, own.patch), (other.major, other.minor, other.patch)
        gaps = [abs(a - b) for a, b in zip(mine, theirs, strict=True)]
        return gaps[0] * 1e12 + gaps[1] * 1e6 + gaps[2]
    if isinstance(own, str) and isinstance(other, str):
        return 1.0 - difflib.SequenceMatcher(None, own, other, autojunk=False).ratio()
    if isinstance(own, (int, float)) and isinstance(other, (int, float)):
        return abs(float(own) - float(other))
    return float("inf")
