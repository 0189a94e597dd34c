"""What planning a part yields: a constant, a closure, a path, or a choice between paths.

Owns what is worked out while planning: calls and literals of constants, and look-ups in constant lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extender.model.device import DeviceFacts
from extender.selectors.device import Prepared
from extender.selectors.errors import CelError
from extender.selectors.frame import NO_VARIABLES, Eval, Frame, charge, exceeded
from extender.selectors.paths import Choice, Path
from extender.selectors.values import UInt, refuse_unhashable


class ProgramError(Exception):
    """Upstream refuses to make a program. The message is upstream's."""


@dataclass(frozen=True, slots=True)
class Const:
    """A value known while planning; costs nothing."""

    value: Any


@dataclass(frozen=True, slots=True)
class Computed:
    """A closure that charges for itself.

    fixed: it depends on nothing: the value and its price, or True when it always fails.
    """

    run: Eval
    fixed: tuple[Any, int] | bool = False


Plan = Const | Computed | Path | Choice


def evaluator(plan: Plan) -> Eval:
    """The closure of a plan, charging for all of it."""
    if isinstance(plan, Const):
        value = plan.value
        return lambda _frame: value
    if isinstance(plan, Computed):
        return plan.run
    return plan.evaluator()


def fixed(closure: Eval) -> Computed:
    """Carry a call of constants out now; later only its price and its outcome are repeated."""
    frame = _scratch()
    try:
        value = closure(frame)
    except CelError as error:
        return Computed(_repeat(None, str(error), frame.limit - frame.left), fixed=True)
    cost = frame.limit - frame.left
    return Computed(_repeat(value, None, cost), fixed=(value, cost))


def _scratch() -> Frame:
    """A frame for what needs no device."""
    return Frame(Prepared(DeviceFacts(driver="")), 1 << 62, NO_VARIABLES)


def _repeat(value: Any, failure: str | None, cost: int) -> Eval:
    def run(frame: Frame) -> Any:
        frame.left = left = frame.left - cost
        if left < 0:
            exceeded(frame, units=False)
        if failure is not None:
            raise CelError(failure)
        return value

    return run


def membership(item: Plan, values: list[Any]) -> Plan | None:
    """`x in [constants]` as a look-up that costs nothing; None when the list isn't all simple."""
    if not values:
        return Const(value=False)
    others: set[tuple[type, Any]] = set()
    numbers: set[Any] = set()
    floats: set[float] = set()
    for value in values:
        kind = type(value)
        if kind in {int, UInt, float}:
            if value == value:  # noqa: PLR0124 - NaN equals nothing, itself included
                numbers.add(value)
                floats.add(float(value))
        elif kind in {str, bool}:
            others.add((kind, value))
        else:
            return None
    run = evaluator(item)

    def contained(frame: Frame) -> bool:
        value = run(frame)
        kind = type(value)
        if kind is str or kind is bool:
            return (kind, value) in others
        if kind is float:
            return value in floats
        if kind is int or kind is UInt:
            return value in numbers
        refuse_unhashable(value)
        return False

    return Computed(contained)


def aggregate(run: Eval, plans: list[Plan], cost: int) -> Plan:
    """A list or map of these parts, made now if all are constants."""
    if all(isinstance(p, Const) for p in plans):
        try:
            return Const(run(_scratch()))
        except CelError as error:
            text = str(error)

            def failing(_frame: Frame) -> Any:
                raise CelError(text)

            return Computed(failing)

    def evaluate(frame: Frame) -> Any:
        try:
            value = run(frame)
        except CelError:
            charge(frame, cost)
            raise
        charge(frame, cost)
        return value

    return Computed(evaluate)
