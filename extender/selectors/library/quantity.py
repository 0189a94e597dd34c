"""Quantities (apiserver library/quantity.go). `sign` is a global function there, so it is here."""

from __future__ import annotations

from typing import Any, Final

from extender.api.quantity import Quantity, QuantityError
from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from extender.selectors.values import SumQuantity

_MAX_DIGITS: Final = 1_000
"""Digits that a quantity may have: no cost counts the work of computing with longer ones."""


def bounded(value: Quantity) -> Quantity:
    """The quantity; raise QuantityError when evaluation could hardly end with such long ones."""
    if value.is_wider_than(_MAX_DIGITS):
        raise QuantityError(f"quantity needs more than {_MAX_DIGITS} digits")
    return value


def parse(text: Any) -> Quantity:
    """`quantity(string)`."""
    try:
        return bounded(Quantity.parse(text))
    except QuantityError as error:
        raise CelError(str(error)) from error


def _is_quantity(text: Any) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _as_integer(value: Any) -> int:
    number, fits = value.as_int64()
    if not fits:
        raise CelError("cannot convert value to integer")
    return int(number)


def _sum(left: Any, right: Any) -> Quantity:
    if not isinstance(right, Quantity):
        right = Quantity(int(right), format="DecimalExponent")
    return SumQuantity.from_quantity(left.add(right))


def _difference(left: Any, right: Any) -> Quantity:
    if not isinstance(right, Quantity):
        right = Quantity(int(right), format="DecimalExponent")
    return SumQuantity.from_quantity(left.sub(right))


def _compare(left: Any, right: Any) -> int:
    return int(left.cmp(right))


def greater(left: Any, right: Any) -> bool:
    """`left.isGreaterThan(right)`."""
    return left.cmp(right) > 0  # type: ignore[no-any-return]  # overloads are typed by the checker


def less(left: Any, right: Any) -> bool:
    """`left.isLessThan(right)`."""
    return left.cmp(right) < 0  # type: ignore[no-any-return]  # overloads are typed by the checker


def _sign(value: Any) -> int:
    return int(value.sign())


def _is_integer(value: Any) -> bool:
    return bool(value.as_int64()[1])


def _float(value: Any) -> float:
    return float(value.as_approximate_float())


_PAIR: Final = (QUANTITY, QUANTITY)

FUNCTIONS: Final = (
    Function("quantity", (Overload("string_to_quantity", (STRING,), QUANTITY, run=parse),)),
    Function("isQuantity", (Overload("is_quantity_string", (STRING,), BOOL, run=_is_quantity),)),
    Function("sign", (Overload("quantity_sign", (QUANTITY,), INT, run=_sign),)),
    Function("isGreaterThan", (Overload("quantity_is_greater_than", _PAIR, BOOL, member=True, run=greater),)),
    Function("isLessThan", (Overload("quantity_is_less_than", _PAIR, BOOL, member=True, run=less),)),
    Function("compareTo", (Overload("quantity_compare_to", _PAIR, INT, member=True, run=_compare),)),
    Function(
        "asApproximateFloat",
        (Overload("quantity_get_float", (QUANTITY,), DOUBLE, member=True, run=_float),),
    ),
    Function("asInteger", (Overload("quantity_get_int", (QUANTITY,), INT, member=True, run=_as_integer),)),
    Function(
        "isInteger", (Overload("quantity_is_integer", (QUANTITY,), BOOL, member=True, run=_is_integer),)
    ),
    Function(
        "add",
        (
            Overload("quantity_add", _PAIR, QUANTITY, member=True, run=_sum),
            Overload("quantity_add_int", (QUANTITY, INT), QUANTITY, member=True, run=_sum),
        ),
    ),
    Function(
        "sub",
        (
            Overload("quantity_sub", _PAIR, QUANTITY, member=True, run=_difference),
            Overload("quantity_sub_int", (QUANTITY, INT), QUANTITY, member=True, run=_difference),
        ),
    ),
)
