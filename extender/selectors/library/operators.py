"""Operators, size and the string predicates of the standard library (cel-go common/stdlib).

Owns arithmetic with overflow checks and order. ==, !=, &&, ||, ?: and indexing are evaluated by the planner;
here they are only declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.equality import COMPARABLE, compare, same
from extender.selectors.errors import CelError
from extender.selectors.library.regex import matches
from extender.selectors.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    PARAM_A,
    PARAM_B,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
)
from extender.selectors.values import (
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    Duration,
    MapValue,
    Timestamp,
    UInt,
    no_overload,
)

_MIN_TIMESTAMP: Final = -62135596800 * 10**9
_MAX_TIMESTAMP: Final = 253402300799 * 10**9 + 999_999_999


def _int(value: int) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise CelError("integer overflow")
    return value


def _uint(value: int) -> UInt:
    if not 0 <= value <= UINT64_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def duration(nanos: int) -> Duration:
    """A duration, or the overflow error of int64 nanoseconds."""
    if not INT64_MIN <= nanos <= INT64_MAX:
        raise CelError("integer overflow")
    return Duration(nanos)


def timestamp(nanos: int, offset: int) -> Timestamp:
    """A timestamp within the years 1 to 9999 in a zone, or the overflow error."""
    if not _MIN_TIMESTAMP <= nanos <= _MAX_TIMESTAMP:
        raise CelError("timestamp overflow")
    return Timestamp(nanos, offset)


def add(left: Any, right: Any) -> Any:
    """`left + right`."""
    kind, other = type(left), type(right)
    if kind is Timestamp and other is Duration:
        return timestamp(left.nanos + right.nanos, left.offset)
    if kind is Duration and other is Timestamp:
        return timestamp(left.nanos + right.nanos, right.offset)
    if kind is not other:
        raise no_overload()
    if kind is int:
        return _int(left + right)
    if kind is UInt:
        return _uint(int(left) + int(right))
    if kind is Duration:
        return duration(left.nanos + right.nanos)
    if kind is Timestamp:
        raise no_overload()
    return left + right


def subtract(left: Any, right: Any) -> Any:
    """`left - right`."""
    kind, other = type(left), type(right)
    if kind is Timestamp and other is Duration:
        return timestamp(left.nanos - right.nanos, left.offset)
    if kind is not other:
        raise no_overload()
    if kind is int:
        return _int(left - right)
    if kind is UInt:
        return _uint(int(left) - int(right))
    if kind is float:
        return left - right
    return duration(left.nanos - right.nanos)


def multiply(left: Any, right: Any) -> Any:
    """`left * right`."""
    kind = type(left)
    if kind is not type(right):
        raise no_overload()
    if kind is int:
        return _int(left * right)
    if kind is UInt:
        return _uint(int(left) * int(right))
    return left * right


def divide(left: Any, right: Any) -> Any:
    """`left / right`; integers truncate toward zero."""
    kind = type(left)
    if kind is not type(right):
        raise no_overload()
    if kind is float:
        return _divide_floats(left, right)
    if right == 0:
        raise CelError("division by zero")
    if kind is UInt:
        return UInt(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return _int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_floats(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Any, right: Any) -> Any:
    """`left % right`; the sign is the dividend's."""
    kind = type(left)
    if kind is not type(right):
        raise no_overload()
    if right == 0:
        raise CelError("modulus by zero")
    if kind is UInt:
        return UInt(int(left) % int(right))
    if left == INT64_MIN and right == -1:
        raise CelError("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negate(value: Any) -> Any:
    """`-value`."""
    if type(value) is int:
        return _int(-value)
    if type(value) is float:
        return -value
    raise no_overload()


def invert(value: Any) -> bool:
    """`!value`."""
    if value is True:
        return False
    if value is False:
        return True
    raise no_overload()


def contained(item: Any, container: Any) -> bool:
    """`item in container`."""
    if type(container) is list:
        return any(same(item, element) for element in container)
    if type(container) is MapValue:
        return container.contains(item)
    raise no_overload()


def size(value: Any) -> int:
    """`size(value)`."""
    return len(value.data) if type(value) is MapValue else len(value)


def _ordered(accept: frozenset[int]) -> Callable[[Any, Any], bool]:
    def run(left: Any, right: Any) -> bool:
        return compare(left, right) in accept

    return run


def _text(method: str) -> Callable[[Any, Any], bool]:
    def run(text: Any, part: Any) -> bool:
        if type(text) is not str or type(part) is not str:
            raise no_overload()
        return bool(getattr(text, method)(part))

    return run


_LIST: Final = list_of(PARAM_A)
_MAP: Final = map_of(PARAM_A, PARAM_B)
_SCALARS: Final = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)


def _relation(name: str, prefix: str, accept: set[int]) -> Function:
    overloads = tuple(Overload(f"{prefix}_{suffix}", (a, b), BOOL) for suffix, a, b in _SCALARS)
    return Function(name, overloads, _ordered(frozenset(accept)), COMPARABLE)


def _arithmetic(
    name: str, run: Callable[..., Any], operands: set[type], *signatures: tuple[str, Type, Type, Type]
) -> Function:
    overloads = tuple(Overload(id_, (a, b), result) for id_, a, b, result in signatures)
    return Function(name, overloads, run, frozenset(operands))


def _sizes() -> Function:
    kinds = (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))
    overloads = [Overload(f"size_{name}", (t,), INT) for name, t in kinds]
    overloads += [Overload(f"{name}_size", (t,), INT, member=True) for name, t in kinds]
    return Function("size", tuple(overloads), size, frozenset({bytes, list, MapValue, str}))


def _predicate(name: str, id_: str, method: str) -> Function:
    overload = Overload(id_, (STRING, STRING), BOOL, member=True, run=_text(method))
    return Function(name, (overload,), guarded=False)


_NUMERIC: Final = {int, UInt, float}

FUNCTIONS: Final = (
    Function("_?_:_", (Overload("conditional", (BOOL, PARAM_A, PARAM_A), PARAM_A),)),
    Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),)),
    Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),)),
    Function("_==_", (Overload("equals", (PARAM_A, PARAM_A), BOOL),)),
    Function("_!=_", (Overload("not_equals", (PARAM_A, PARAM_A), BOOL),)),
    Function("!_", (Overload("logical_not", (BOOL,), BOOL),), invert),
    Function("@not_strictly_false", (Overload("not_strictly_false", (BOOL,), BOOL),)),
    Function(
        "_[_]",
        (
            Overload("index_list", (_LIST, INT), PARAM_A),
            Overload("index_map", (_MAP, PARAM_A), PARAM_B),
        ),
    ),
    Function(
        "@in",
        (Overload("in_list", (PARAM_A, _LIST), BOOL), Overload("in_map", (PARAM_A, _MAP), BOOL)),
        contained,
    ),
    _arithmetic(
        "_+_",
        add,
        _NUMERIC | {str, bytes, list, Timestamp, Duration},
        ("add_bytes", BYTES, BYTES, BYTES),
        ("add_double", DOUBLE, DOUBLE, DOUBLE),
        ("add_duration_duration", DURATION, DURATION, DURATION),
        ("add_duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP),
        ("add_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        ("add_int64", INT, INT, INT),
        ("add_list", _LIST, _LIST, _LIST),
        ("add_string", STRING, STRING, STRING),
        ("add_uint64", UINT, UINT, UINT),
    ),
    _arithmetic(
        "_-_",
        subtract,
        _NUMERIC | {Timestamp, Duration},
        ("subtract_double", DOUBLE, DOUBLE, DOUBLE),
        ("subtract_duration_duration", DURATION, DURATION, DURATION),
        ("subtract_int64", INT, INT, INT),
        ("subtract_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        ("subtract_timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION),
        ("subtract_uint64", UINT, UINT, UINT),
    ),
    _arithmetic(
        "_*_",
        multiply,
        _NUMERIC,
        ("multiply_double", DOUBLE, DOUBLE, DOUBLE),
        ("multiply_int64", INT, INT, INT),
        ("multiply_uint64", UINT, UINT, UINT),
    ),
    _arithmetic(
        "_/_",
        divide,
        _NUMERIC,
        ("divide_double", DOUBLE, DOUBLE, DOUBLE),
        ("divide_int64", INT, INT, INT),
        ("divide_uint64", UINT, UINT, UINT),
    ),
    _arithmetic(
        "_%_",
        modulo,
        {int, UInt},
        ("modulo_int64", INT, INT, INT),
        ("modulo_uint64", UINT, UINT, UINT),
    ),
    Function(
        "-_",
        (Overload("negate_double", (DOUBLE,), DOUBLE), Overload("negate_int64", (INT,), INT)),
        negate,
        frozenset({int, float, bool}),
    ),
    _relation("_<_", "less", {-1}),
    _relation("_<=_", "less_equals", {-1, 0}),
    _relation("_>_", "greater", {1}),
    _relation("_>=_", "greater_equals", {0, 1}),
    _sizes(),
    Function("dyn", (Overload("to_dyn", (PARAM_A,), DYN),), lambda value: value),
    _predicate("contains", "contains_string", "__contains__"),
    _predicate("endsWith", "ends_with_string", "endswith"),
    _predicate("startsWith", "starts_with_string", "startswith"),
    Function(
        "matches",
        (
            Overload("matches", (STRING, STRING), BOOL),
            Overload("matches_string", (STRING, STRING), BOOL, member=True),
        ),
        matches,
        frozenset({str}),
    ),
)
