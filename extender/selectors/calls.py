"""Calls: closures that evaluate arguments, choose an overload by run-time types and charge the price.

Owns the order of evaluation and charging when arguments are in error (cel-go interpreter/interpretable.go):
one and two arguments are all evaluated, more stop at the first error and then may go uncharged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from extender.api.quantity import Quantity
from extender.selectors.ast import Node
from extender.selectors.cost import AFTERWARDS, FAILED, Price
from extender.selectors.declarations import Function, Implementation, Overload
from extender.selectors.errors import CelError
from extender.selectors.frame import Eval, Frame, charge, exceeded
from extender.selectors.soundness import sound
from extender.selectors.types import Type
from extender.selectors.values import is_a, type_name


def implementation(function: Function, candidates: list[Overload], args: list[Node]) -> Implementation:
    """What carries out the call, with the checks that the static types leave open."""
    if function.run is not None:
        return _singleton(function)
    if len(candidates) == 1:
        overload = candidates[0]
        assert overload.run is not None
        if not function.guarded or all(map(_settled, args, overload.args)):
            return overload.run
        return _guarded(function.name, overload)
    return _dispatched(function)


def _settled(arg: Node, declared: Type) -> bool:
    """Whether the static type alone says that a value fits."""
    fixed = arg.type == declared and not declared.params and declared.kind not in {"dyn", "any", "param"}
    return fixed and sound(arg)


def _none_fits(name: str, args: Sequence[Any]) -> CelError:
    return CelError(f"no such overload: {name}({', '.join(map(type_name, args))})")


def _singleton(function: Function) -> Implementation:
    run, operands, name = function.run, function.operands, function.name
    assert run is not None
    if operands is None:
        return run

    def checked(*args: Any) -> Any:
        if type(args[0]) not in operands:
            raise CelError(f"no such overload: {name}")
        return run(*args)

    return checked


def _guarded(name: str, overload: Overload) -> Implementation:
    run, wanted = overload.run, overload.args
    assert run is not None

    def checked(*args: Any) -> Any:
        for declared, arg in zip(wanted, args, strict=True):
            if not is_a(declared, arg):
                raise _none_fits(name, args)
        return run(*args)

    return checked


def _dispatched(function: Function) -> Implementation:
    by_count: dict[int, list[Overload]] = {}
    for overload in function.overloads:
        by_count.setdefault(len(overload.args), []).append(overload)
    guarded, name = function.guarded, function.name

    def dispatch(*args: Any) -> Any:
        for overload in by_count.get(len(args), ()):
            run = overload.run
            if run is None:
                continue
            if not guarded or all(map(is_a, overload.args, args)):
                return run(*args)
        raise _none_fits(name, args)

    return dispatch


def call0(run: Callable[[], Any], price: Price) -> Eval:
    """A call without arguments."""
    assert isinstance(price, int)

    def evaluate(frame: Frame) -> Any:
        charge(frame, price)
        return run()

    return evaluate


def _before(price: Price) -> Callable[[Sequence[Any], Any], int] | None:
    """The price that is due before the call is carried out, if it is one."""
    return None if isinstance(price, int) or price in AFTERWARDS else price


def call1(arg: Eval, run: Callable[[Any], Any], price: Price) -> Eval:
    """A call with one argument."""
    before = _before(price)

    def evaluate(frame: Frame) -> Any:
        try:
            value = arg(frame)
        except CelError:
            charge(frame, price if isinstance(price, int) else price((FAILED,), FAILED))
            raise
        if before is not None:
            charge(frame, before((value,), None))
            return run(value)
        try:
            result = run(value)
        except CelError:
            charge(frame, price if isinstance(price, int) else price((value,), FAILED))
            raise
        frame.left = left = frame.left - (price if type(price) is int else price((value,), result))  # type: ignore[operator]  # type() narrows for speed
        if left < 0:
            exceeded(frame, units=False)
        return result

    return evaluate


def call2(left_arg: Eval, right_arg: Eval, run: Callable[[Any, Any], Any], price: Price) -> Eval:
    """A call with two arguments, both evaluated whatever happens."""
    before = _before(price)

    def failed(frame: Frame, left: Any, right: Any) -> None:
        charge(frame, price if isinstance(price, int) else price((left, right), FAILED))

    def evaluate(frame: Frame) -> Any:
        try:
            first = left_arg(frame)
        except CelError:
            try:
                second = right_arg(frame)
            except CelError:
                second = FAILED
            failed(frame, FAILED, second)
            raise
        try:
            second = right_arg(frame)
        except CelError:
            failed(frame, first, FAILED)
            raise
        if before is not None:
            charge(frame, before((first, second), None))
            return run(first, second)
        try:
            result = run(first, second)
        except CelError:
            failed(frame, first, second)
            raise
        frame.left = left = frame.left - (price if type(price) is int else price((first, second), result))  # type: ignore[operator]  # type() narrows for speed
        if left < 0:
            exceeded(frame, units=False)
        return result

    return evaluate


def call_fixed(
    left_arg: Eval, right: Any, right_cost: int, run: Callable[[Any, Any], Any], cost: int
) -> Eval:
    """A call of two arguments at a constant price whose second is known, but still has to be paid for."""
    total = right_cost + cost

    def evaluate(frame: Frame) -> Any:
        try:
            result = run(left_arg(frame), right)
        except CelError:
            charge(frame, total)
            raise
        frame.left = left = frame.left - total
        if left < 0:
            exceeded(frame, units=False)
        return result

    return evaluate


def call_quantity(left_arg: Eval, right: Quantity, cost: int, wanted: int) -> Eval:
    """IsGreaterThan (wanted 1) or isLessThan (-1) with a known quantity whose price is in the cost."""

    def evaluate(frame: Frame) -> Any:
        try:
            result = left_arg(frame).cmp(right) == wanted
        except CelError:
            charge(frame, cost)
            raise
        frame.left = left = frame.left - cost
        if left < 0:
            exceeded(frame, units=False)
        return result

    return evaluate


def call_many(args: list[Eval], run: Implementation, price: Price) -> Eval:
    """A call that stops at the first argument in error; only an error in the last one is charged."""
    last = len(args) - 1
    before = _before(price)

    def cost(values: list[Any], result: Any) -> int:
        return price if isinstance(price, int) else price(values, result)

    def evaluate(frame: Frame) -> Any:
        values: list[Any] = []
        for place, arg in enumerate(args):
            try:
                values.append(arg(frame))
            except CelError:
                if place == last:
                    charge(frame, cost([*values, FAILED], FAILED))
                raise
        if before is not None:
            charge(frame, before(values, None))
            return run(*values)
        try:
            result = run(*values)
        except CelError:
            charge(frame, cost(values, FAILED))
            raise
        charge(frame, cost(values, result))
        return result

    return evaluate
