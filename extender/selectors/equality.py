"""Equality and order of values (cel-go common/types).

Owns which types can be compared, how numbers of several types meet, what is an error and what only unequal.
"""

from __future__ import annotations

import math
from typing import Any, Final

from extender.api.quantity import Quantity
from extender.selectors.errors import CelError
from extender.selectors.semver import Semver
from extender.selectors.values import (
    INT64_MAX,
    INT64_MIN,
    MISSING,
    UINT64_MAX,
    Duration,
    MapValue,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    no_overload,
)


def compare_numbers(  # noqa: PLR0911 - one return for each pair of types
    left: Any, right: Any
) -> int | None:
    """-1, 0 or 1 across int, uint and double; None with NaN. A double meets integers as doubles."""
    if type(left) is float:
        if type(right) is float:
            if left < right:
                return -1
            return 1 if left > right else (0 if left == right else None)
        swapped = compare_numbers(right, left)
        return None if swapped is None else -swapped
    if type(right) is float:
        if math.isnan(right):
            return None
        low, high = (0, UINT64_MAX) if type(left) is UInt else (INT64_MIN, INT64_MAX)
        if right < low:
            return 1
        if right > float(high):
            return -1
        near = float(left)
        return (near > right) - (near < right)
    return int(left > right) - int(left < right)


_NUMBERS: Final = frozenset({int, UInt, float})
_SIMPLE: Final = frozenset({int, UInt, str, bytes})
"""Types whose lists Python compares as the language does."""


def equal(left: Any, right: Any) -> bool:  # noqa: PLR0911 - one return for each type's Equal upstream
    """`left == right`; raise CelError where upstream's Equal of the left type refuses the right one."""
    kind = type(left)
    if kind is str or kind is bool or kind is bytes:
        return type(right) is kind and bool(left == right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and compare_numbers(left, right) == 0
    if kind is list:
        if type(right) is not list or len(left) != len(right):
            return False
        if _SIMPLE.issuperset(map(type, left)) and _SIMPLE.issuperset(map(type, right)):
            return bool(left == right)
        return not any(_differ(a, b) for a, b in zip(left, right, strict=True))
    if kind is MapValue:
        return _equal_maps(left, right)
    if kind is Semver:
        if type(right) is not Semver:
            raise no_overload()
        return bool(left.same_as(right))
    if isinstance(left, Quantity):
        if type(right) is not Quantity:
            raise no_overload()
        return left.cmp(right) == 0
    return _equal_rest(left, right)


def _equal_rest(left: Any, right: Any) -> bool:
    if isinstance(left, (Timestamp, Duration)):
        return type(right) is type(left) and left.nanos == right.nanos
    if isinstance(left, TypeValue):
        return isinstance(right, TypeValue) and left.name == right.name
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equal(left.value, right.value)
    return bool(left.equals(right))


def _differ(left: Any, right: Any) -> bool:
    """Elements differ only if their equality says false; an error counts as alike, as upstream has it."""
    try:
        return not equal(left, right)
    except CelError:
        return False


def _equal_maps(left: MapValue, right: Any) -> bool:
    if type(right) is not MapValue or len(left.data) != len(right.data):
        return False
    for key, value in left.items():
        other = right.find(key)
        if other is MISSING or _differ(value, other):
            return False
    return True


def same(left: Any, right: Any) -> bool:
    """Equality inside containers and searches: an error is no match."""
    try:
        return equal(left, right)
    except CelError:
        return False


def compare(left: Any, right: Any) -> int:
    """Compare for <, <=, > and >=; raise CelError when the right operand is of the wrong type."""
    kind = type(left)
    if kind in _NUMBERS:
        if type(right) not in _NUMBERS:
            raise no_overload()
        order = compare_numbers(left, right)
        if order is None:
            raise CelError("NaN values cannot be ordered")
        return order
    if type(right) is not kind:
        raise no_overload()
    if kind is str:
        left, right = left.encode(), right.encode()
    elif kind is Timestamp or kind is Duration:
        left, right = left.nanos, right.nanos
    return int(left > right) - int(left < right)


COMPARABLE: Final = frozenset({bool, int, UInt, float, str, bytes, Timestamp, Duration})
"""Types that have an order."""
