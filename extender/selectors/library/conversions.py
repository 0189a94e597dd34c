"""Type conversions: bool, bytes, double, duration, int, string, timestamp, uint, type.

Owns their texts and limits (cel-go common/types). A conversion of a constant happens while compiling; an
error then makes the program impossible.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.library import instants
from extender.selectors.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    PARAM_A,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    type_of,
)
from extender.selectors.values import (
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    go_float,
    type_name,
)

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that are folded when their argument is a constant (overloads.IsTypeConversionFunction)."""

_SIGNED: Final = re.compile(r"[+-]?[0-9]+")
_UNSIGNED: Final = re.compile(r"[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(?:{d}\.?(?:{d})?|\.{d})(?:[eE][+-]?{d})?".format(d="[0-9](?:_?[0-9])*"))
_HEX_FLOAT: Final = re.compile(
    r"[+-]?0[xX](?:_?{d}\.?(?:{d})?|\.{d})[pP][+-]?[0-9](?:_?[0-9])*".format(
        d="[0-9a-fA-F](?:_?[0-9a-fA-F])*"
    )
)
_SPECIAL_FLOAT: Final = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _failed(source: str, target: str) -> CelError:
    return CelError(f"type conversion error from '{source}' to '{target}'")


def to_bool(value: Any) -> Any:
    """`bool(string)`."""
    known = _BOOLS.get(value)
    if known is None:
        raise _failed("string", "bool")
    return known


def to_bytes(value: Any) -> bytes:
    """`bytes(string)`."""
    return str(value).encode()


def to_double(value: Any) -> float:
    """`double(int|uint|string)`."""
    if type(value) is not str:
        return float(value)
    special = _SPECIAL_FLOAT.fullmatch(value)
    if special is not None:
        if special[2].lower() == "nan":
            if special[1]:
                raise _failed("string", "double")
            return math.nan
        return -math.inf if special[1] == "-" else math.inf
    if _HEX_FLOAT.fullmatch(value):
        try:
            return float.fromhex(value.replace("_", ""))
        except OverflowError:
            raise _failed("string", "double") from None
    if not _FLOAT.fullmatch(value):
        raise _failed("string", "double")
    number = float(value)
    if math.isinf(number):
        raise _failed("string", "double")
    return number


def to_int(value: Any) -> int:
    """`int(double|duration|string|timestamp|uint)`."""
    kind = type(value)
    if kind is str:
        if not _SIGNED.fullmatch(value) or len(value) > 4000:
            raise _failed("string", "int")
        number = int(value)
        if not INT64_MIN <= number <= INT64_MAX:
            raise _failed("string", "int")
        return number
    if kind is float:
        if not math.isfinite(value) or value <= float(INT64_MIN) or value >= float(INT64_MAX):
            raise CelError("integer overflow")
        return int(value)
    if kind is Duration:
        return int(value.nanos)
    if kind is Timestamp:
        return int(value.nanos // 10**9)
    if value > INT64_MAX:
        raise CelError("integer overflow")
    return int(value)


def to_uint(value: Any) -> UInt:
    """`uint(double|int|string)`."""
    kind = type(value)
    if kind is str:
        if not _UNSIGNED.fullmatch(value) or len(value) > 4000 or int(value) > UINT64_MAX:
            raise _failed("string", "uint")
        return UInt(value)
    if kind is float:
        if not math.isfinite(value) or value < 0 or value >= float(UINT64_MAX):
            raise CelError("unsigned integer overflow")
        return UInt(int(value))
    if value < 0:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def to_string(value: Any) -> str:  # noqa: PLR0911 - one return for each type
    """`string(scalar)`."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return go_float(value)
    if kind is bytes:
        try:
            return str(value.decode("utf-8"))
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if kind is Timestamp:
        return instants.timestamp_text(value)
    if kind is Duration:
        return instants.duration_text(value)
    if kind is TypeValue:
        return str(value.name)
    return str(value)


def to_type(value: Any) -> TypeValue:
    """`type(value)`."""
    return TypeValue(type_name(value))


def _identity(value: Any) -> Any:
    return value


def _conversion(name: str, result: Type, *sources: tuple[str, Type, Callable[[Any], Any]]) -> Function:
    return Function(name, tuple(Overload(id_, (source,), result, run=run) for id_, source, run in sources))


FUNCTIONS: Final = (
    Function("type", (Overload("type", (PARAM_A,), type_of(PARAM_A)),), to_type),
    _conversion("bool", BOOL, ("bool_to_bool", BOOL, _identity), ("string_to_bool", STRING, to_bool)),
    _conversion("bytes", BYTES, ("bytes_to_bytes", BYTES, _identity), ("string_to_bytes", STRING, to_bytes)),
    _conversion(
        "double",
        DOUBLE,
        ("double_to_double", DOUBLE, _identity),
        ("int64_to_double", INT, to_double),
        ("string_to_double", STRING, to_double),
        ("uint64_to_double", UINT, to_double),
    ),
    _conversion(
        "duration",
        DURATION,
        ("duration_to_duration", DURATION, _identity),
        ("string_to_duration", STRING, instants.parse_duration),
    ),
    _conversion(
        "int",
        INT,
        ("int64_to_int64", INT, _identity),
        ("double_to_int64", DOUBLE, to_int),
        ("duration_to_int64", DURATION, to_int),
        ("string_to_int64", STRING, to_int),
        ("timestamp_to_int64", TIMESTAMP, to_int),
        ("uint64_to_int64", UINT, to_int),
    ),
    _conversion(
        "string",
        STRING,
        ("string_to_string", STRING, _identity),
        ("bool_to_string", BOOL, to_string),
        ("bytes_to_string", BYTES, to_string),
        ("double_to_string", DOUBLE, to_string),
        ("duration_to_string", DURATION, to_string),
        ("int64_to_string", INT, to_string),
        ("timestamp_to_string", TIMESTAMP, to_string),
        ("uint64_to_string", UINT, to_string),
    ),
    _conversion(
        "timestamp",
        TIMESTAMP,
        ("timestamp_to_timestamp", TIMESTAMP, _identity),
        ("int64_to_timestamp", INT, instants.timestamp_of_seconds),
        ("string_to_timestamp", STRING, instants.parse_timestamp),
    ),
    _conversion(
        "uint",
        UINT,
        ("uint64_to_uint64", UINT, _identity),
        ("double_to_uint64", DOUBLE, to_uint),
        ("int64_to_uint64", INT, to_uint),
        ("string_to_uint64", STRING, to_uint),
    ),
)
