"""Messages that an expression may make by name: protobuf's well-known types (cel-go common/types/pb).

Owns their fields and what each becomes: a wrapper the value that it wraps, a Struct a map, a Value JSON, and
so on. Declared messages of Kubernetes are in `checker`; they can't be made.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from extender.selectors import types as t
from extender.selectors.errors import CelError
from extender.selectors.library.instants import duration_text, timestamp_text
from extender.selectors.types import Type
from extender.selectors.values import (
    INT64_MAX,
    INT64_MIN,
    Duration,
    MapValue,
    Optional,
    Timestamp,
    UInt,
    map_key,
    show,
    type_name,
)

_PREFIX: Final = "google.protobuf."
_SAFE_INTEGER: Final = (1 << 53) - 1
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its static type, its fields' types, and the value that given fields make."""

    result: Type
    fields: Mapping[str, Type]
    make: Callable[[Fields], Any]


class Empty:
    """The value of google.protobuf.Empty; all are alike."""

    __slots__ = ()
    type_name = _PREFIX + "Empty"
    go_type = "*types.protoObj"

    def equals(self, other: Any) -> bool:
        """Equality upstream: messages of one type by their fields, of which there are none."""
        return isinstance(other, Empty)


def convert(message: str, field: str, wanted: Type, value: Any) -> Any:
    """The value as the field holds it; raise CelError for what it can't hold."""
    try:
        return _converted(f"{message}.{field}", wanted, value)
    except CelError as error:
        head = f"field type conversion error for {message}.{field} value type: "
        raise CelError(head + str(error)) from error


def _converted(place: str, wanted: Type, value: Any) -> Any:
    kind = type(value)
    if wanted.kind == "dyn":
        return json_value(value)
    if wanted.kind in {"list", "map"}:
        if kind is not (list if wanted.kind == "list" else MapValue):
            raise CelError(f"unsupported field type: {type_name(value)}")
        return json_value(value)
    if kind is not _NATIVE[wanted.kind]:
        raise CelError(f"unsupported type conversion from '{type_name(value)}' to {wanted.name}")
    low, high, text = _RANGES.get(place, _ANY_INTEGER)
    if kind in {int, UInt} and not low <= value <= high:
        raise CelError(text)
    return _single(value) if place == _PREFIX + "FloatValue.value" else value


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


_NATIVE: Final[Mapping[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
}
_ANY_INTEGER: Final = (-(1 << 63), (1 << 64) - 1, "")
_INT32: Final = (-(1 << 31), (1 << 31) - 1, "integer overflow")
_RANGES: Final = {
    _PREFIX + "Int32Value.value": _INT32,
    _PREFIX + "Duration.nanos": _INT32,
    _PREFIX + "Timestamp.nanos": _INT32,
    _PREFIX + "Value.null_value": _INT32,
    _PREFIX + "UInt32Value.value": (0, (1 << 32) - 1, "unsigned integer overflow"),
}


def json_value(value: Any) -> Any:  # noqa: PLR0911 - one return for each type
    """A value after its way through google.protobuf.Value; raise CelError for what JSON can't hold."""
    kind = type(value)
    if value is None or kind in {bool, float, str}:
        return value
    if kind in {int, UInt}:
        return float(value) if abs(value) <= _SAFE_INTEGER else str(int(value))
    if kind is bytes:
        return base64.b64encode(value).decode()
    if kind is list:
        return [json_value(item) for item in value]
    if kind is MapValue:
        return MapValue({map_key(_json_key(key)): json_value(item) for key, item in value.items()})
    if kind is Timestamp:
        return timestamp_text(value)
    if kind is Duration:
        return duration_text(value)
    if kind is Empty:
        return MapValue({})
    if kind is Optional and value.present:
        return json_value(value.value)
    raise CelError(f"type conversion error from '{type_name(value)}' to 'google.protobuf.Value'")


def _json_key(key: Any) -> str:
    if type(key) is str:
        return str(key)
    raise CelError(f"type conversion error from '{type_name(key)}' to 'string'")


def build(name: str, message: Message, given: list[tuple[str, Any, bool]]) -> Any:
    """The value of a message with these (field, value, optional); raise CelError."""
    fields: dict[str, Any] = {}
    for field, value, optional in given:
        held = value
        if optional:
            if type(value) is not Optional:
                raise CelError(
                    f"cannot initialize optional entry '{field}' from non-optional value {show(value)}"
                )
            if not value.present:
                fields.pop(field, None)
                continue
            held = value.value
        fields[field] = held
    return message.make(
        {field: convert(name, field, message.fields[field], value) for field, value in fields.items()}
    )


def _wrapper(type_: Type, zero: Any) -> Message:
    return Message(t.nullable(type_), {"value": type_}, lambda fields: fields.get("value", zero))


def _any(_fields: Fields) -> Any:
    raise CelError("unsupported conversion to ref.Val: (*dynamicpb.Message)")


def _value(fields: Fields) -> Any:
    """The oneof that was set last; null when none was."""
    values = [None if field == "null_value" else value for field, value in fields.items()]
    return values[-1] if values else None


def _instant(fields: Fields) -> Timestamp:
    """A message is not bound to the years 1 to 9999, unlike what is computed."""
    return Timestamp(_nanos(fields))


def _span(fields: Fields) -> Duration:
    """Upstream stops at the ends of int64 nanoseconds."""
    return Duration(min(max(_nanos(fields), INT64_MIN), INT64_MAX))


def _nanos(fields: Fields) -> int:
    return int(fields.get("seconds", 0)) * 10**9 + int(fields.get("nanos", 0))


_JSON_MAP: Final = t.map_of(t.STRING, t.DYN)
_JSON_LIST: Final = t.list_of(t.DYN)
_TIME_FIELDS: Final = {"seconds": t.INT, "nanos": t.INT}

MESSAGES: Final[Mapping[str, Message]] = {
    _PREFIX + "BoolValue": _wrapper(t.BOOL, zero=False),
    _PREFIX + "BytesValue": _wrapper(t.BYTES, zero=b""),
    _PREFIX + "DoubleValue": _wrapper(t.DOUBLE, zero=0.0),
    _PREFIX + "FloatValue": _wrapper(t.DOUBLE, zero=0.0),
    _PREFIX + "Int32Value": _wrapper(t.INT, zero=0),
    _PREFIX + "Int64Value": _wrapper(t.INT, zero=0),
    _PREFIX + "StringValue": _wrapper(t.STRING, zero=""),
    _PREFIX + "UInt32Value": _wrapper(t.UINT, zero=UInt(0)),
    _PREFIX + "UInt64Value": _wrapper(t.UINT, zero=UInt(0)),
    _PREFIX + "Duration": Message(t.DURATION, _TIME_FIELDS, _span),
    _PREFIX + "Timestamp": Message(t.TIMESTAMP, _TIME_FIELDS, _instant),
    _PREFIX + "Struct": Message(
        _JSON_MAP, {"fields": _JSON_MAP}, lambda fields: fields.get("fields") or MapValue({})
    ),
    _PREFIX + "ListValue": Message(
        _JSON_LIST, {"values": _JSON_LIST}, lambda fields: fields.get("values", [])
    ),
    _PREFIX + "Value": Message(
        t.DYN,
        {
            "null_value": t.INT,
            "number_value": t.DOUBLE,
            "string_value": t.STRING,
            "bool_value": t.BOOL,
            "struct_value": _JSON_MAP,
            "list_value": _JSON_LIST,
        },
        _value,
    ),
    _PREFIX + "Empty": Message(Type("struct", _PREFIX + "Empty"), {}, lambda _fields: Empty()),
    _PREFIX + "Any": Message(t.ANY, {"type_url": t.STRING, "value": t.BYTES}, _any),
}
ENUMS: Final[Mapping[str, int]] = {_PREFIX + "NullValue.NULL_VALUE": 0}
"""Names of enum values: integers."""
