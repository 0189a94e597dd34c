"""Comprehensions: loops over lists and maps, and bound variables.

Owns the folds (cel-go interpreter evalFold). all, exists and exists_one have loops of their own that charge
what the steps of the general fold would.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extender.selectors.cost import equality
from extender.selectors.errors import CelError
from extender.selectors.frame import UNSET, Eval, Frame, charge, exceeded
from extender.selectors.values import INT64_MAX, MapValue, go_type, no_overload


def items(values: Any) -> Iterable[Any]:
    """What a loop with one variable visits."""
    if type(values) is list:
        return values
    if type(values) is MapValue:
        return list(values.keys())
    raise CelError(f"got '{go_type(values)}', expected iterable type")


def pairs(values: Any) -> Iterable[tuple[Any, Any]]:
    """What a loop with two variables visits."""
    if type(values) is list:
        return enumerate(values)
    if type(values) is MapValue:
        return list(values.items())
    raise CelError(f"unsupported comprehension range type: {go_type(values)}")


class Slots:
    """Places of a fold's variables in the frame; `second` is negative in a loop with one variable."""

    __slots__ = ("accu", "first", "second")

    def __init__(self, accu: int, first: int, second: int) -> None:
        self.accu = accu
        self.first = first
        self.second = second


def accumulator(slot: int, initial: Eval) -> Eval:
    """Reads an accumulator, making its initial value on first use; an error stays."""

    def read(frame: Frame) -> Any:
        value = frame.variables[slot]
        if value is UNSET:
            try:
                value = initial(frame)
            except CelError as error:
                frame.variables[slot] = error
                raise
            frame.variables[slot] = value
        elif type(value) is CelError:
            raise value.with_traceback(None)
        return value

    return read


def variable(slot: int) -> Eval:
    """Reads a loop variable."""

    def read(frame: Frame) -> Any:
        return frame.variables[slot]

    return read


def binding(slots: Slots, result: Eval) -> Eval:
    """cel.bind and its kin: no round, only the result, in which the accumulator is the bound value."""
    accu = slots.accu

    def evaluate(frame: Frame) -> Any:
        frame.variables[accu] = UNSET
        return result(frame)

    return evaluate


def fold(slots: Slots, range_: Eval, condition: Eval, step: Eval, result: Eval) -> Eval:
    """The general loop."""
    accu, first, second = slots.accu, slots.first, slots.second

    def evaluate(frame: Frame) -> Any:
        values = range_(frame)
        variables = frame.variables
        visited: Iterable[Any] = items(values) if second < 0 else pairs(values)
        variables[accu] = UNSET
        for item in visited:
            if second < 0:
                variables[first] = item
            else:
                variables[first], variables[second] = item
            try:
                if condition(frame) is False:
                    break
            except CelError:
                pass  # upstream ends a loop at false only; an error goes on
            try:
                variables[accu] = step(frame)
            except CelError as error:
                variables[accu] = error
        return result(frame)

    return evaluate


def quantifier(slots: Slots, range_: Eval, predicate: Eval, *, every: bool) -> Eval:
    """all() and exists(): each round costs 2 (3) for the condition, 1 for the accumulator; the end 1."""
    first, second = slots.first, slots.second
    round_cost = 2 if every else 3

    def evaluate(frame: Frame) -> Any:
        values = range_(frame)
        variables = frame.variables
        visited: Iterable[Any] = items(values) if second < 0 else pairs(values)
        decided = False
        failure: CelError | None = None
        for item in visited:
            frame.left = left = frame.left - round_cost - (0 if decided else 1)
            if left < 0:
                exceeded(frame, units=True)
            if decided:
                break
            if second < 0:
                variables[first] = item
            else:
                variables[first], variables[second] = item
            try:
                value = predicate(frame)
            except CelError as error:
                failure = failure or error
                continue
            if value is not every:
                if type(value) is bool:
                    decided = True
                else:
                    failure = failure or no_overload()
        charge(frame, 1)
        if decided:
            return not every
        if failure is not None:
            raise failure
        return every

    return evaluate


def exactly_one(slots: Slots, range_: Eval, predicate: Eval) -> Eval:
    """exists_one(): a hit costs 2; the end 2. Errors are not absorbed."""
    first, second = slots.first, slots.second

    def evaluate(frame: Frame) -> Any:
        values = range_(frame)
        variables = frame.variables
        visited: Iterable[Any] = items(values) if second < 0 else pairs(values)
        count = 0
        failure: CelError | None = None
        for item in visited:
            if second < 0:
                variables[first] = item
            else:
                variables[first], variables[second] = item
            try:
                value = predicate(frame)
            except CelError as error:
                failure = error
                continue
            if value is True:
                frame.left = left = frame.left - 2
                if left < 0:
                    exceeded(frame, units=True)
                count += 1
                assert count <= INT64_MAX
            elif value is not False:
                failure = no_overload()
        charge(frame, 1)
        charge(frame, equality(count, 1))
        if failure is not None:
            raise failure
        return count == 1

    return evaluate
