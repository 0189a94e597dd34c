"""Run-time values of the language, their types, keys, sizes and texts.

bool, int, float, str, bytes, None and list stand for themselves; the rest are classes here (cel-go's
common/types). Equality and order are in `equality`, functions in `library`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from extender.api.quantity import Quantity
from extender.selectors.errors import Aborted, CelError
from extender.selectors.semver import Semver
from extender.selectors.types import Type

INT64_MAX: Final = (1 << 63) - 1
INT64_MIN: Final = -(1 << 63)
UINT64_MAX: Final = (1 << 64) - 1


class UInt(int):
    """An unsigned integer; compares with the other numbers by value."""

    __slots__ = ()


class Timestamp:
    """A point in time: nanoseconds since the Unix epoch, and minutes east of UTC that its text had."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset


class Duration:
    """A length of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos


class TypeValue:
    """A type as a value; compares by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Unnamed:
    """Stands where a message's name is used as a value: its type is known, but upstream has no such value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Optional:
    """An optional; `NONE` is the empty one."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any, *, present: bool = True) -> None:
        self.value = value
        self.present = present


NONE: Final = Optional(None, present=False)


class SumQuantity(Quantity):
    """What add() and sub() give: a pointer upstream, which Equal does not accept on its right side."""

    __slots__ = ()

    @classmethod
    def from_quantity(cls, quantity: Quantity) -> SumQuantity:
        """The same quantity as a result of a sum."""
        return cls(
            quantity._unscaled,  # noqa: SLF001 - its own base class
            quantity._exponent,  # noqa: SLF001 - its own base class
            format=quantity._format,  # noqa: SLF001 - its own base class
            decimal=quantity._decimal,  # noqa: SLF001 - its own base class
        )


class MapValue:
    """A map. A key of int, uint or double finds an equal int or uint; only a double finds a double.

    `default` is what a missing key yields, for the outer maps of a device; None for all others.
    """

    __slots__ = ("data", "default")

    def __init__(self, data: dict[Any, Any], default: Any = None) -> None:
        self.data = data
        self.default = default

    def find(self, key: Any) -> Any:
        """The value, or MISSING."""
        found = self.data.get(key, MISSING) if type(key) is str else self._find(key)
        if found is MISSING and self.default is not None:
            return self.default
        return found

    def contains(self, key: Any) -> bool:
        """Whether the key is really there; raises Aborted for what Go can't hash."""
        if type(key) is str:
            return key in self.data
        if self.default is None:
            refuse_unhashable(key)
        return self._find(key) is not MISSING

    def _find(self, key: Any) -> Any:
        for form in _forms(key):
            found = self.data.get(form, MISSING)
            if found is not MISSING:
                return found
        return MISSING

    def keys(self) -> Iterator[Any]:
        """The keys as values."""
        for key in self.data:
            yield key.value if type(key) is _Key else key

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Pairs of key and value."""
        for key, value in self.data.items():
            yield (key.value if type(key) is _Key else key), value


class _Missing:
    __slots__ = ()


MISSING: Final = _Missing()
"""Stands for "no such key" inside the engine; never a value of an expression."""


def map_key(key: Any) -> Any:
    """The form in which MapValue.data keeps a key; raise Aborted for what Go can't hash."""
    if type(key) is str or type(key) is int:
        return key
    refuse_unhashable(key)
    return _Key(key)


def _forms(key: Any) -> Iterator[Any]:
    """The forms under which a key is looked for, in upstream's order (common/types/map.go Find)."""
    kind = type(key)
    yield key if kind is str or kind is int else _Key(key)
    if kind is int:
        if key >= 0:
            yield _Key(UInt(key))
    elif kind is UInt:
        if key <= INT64_MAX:
            yield int(key)
    elif kind is float and key.is_integer():
        if float(INT64_MIN) < key < float(INT64_MAX):
            yield int(key)
        if 0 <= key < float(UINT64_MAX):
            yield _Key(UInt(key))


def refuse_unhashable(value: Any) -> None:
    """Raise Aborted for values that Go can't hash."""
    if type(value) in {bytes, Semver} or getattr(value, "unhashable", False):
        raise Aborted(f"internal error: runtime error: hash of unhashable type {go_type(value)}")


class _Key:
    """A key that is no text or int. Go finds some types by value, others as one and the same object."""

    __slots__ = ("form", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.form = _key_form(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Key and self.form == other.form

    def __hash__(self) -> int:
        return hash(self.form)


_SHARED_ZONES: Final = frozenset(range(-12 * 60, 15 * 60, 60))
"""Minutes east whose zone Go makes once; timestamps of other zones differ by their zone's address."""


def _key_form(value: Any) -> Any:
    kind = type(value)
    if kind is bool or kind is UInt:
        return kind, int(value)
    if kind is float:
        return kind, object() if math.isnan(value) else value  # every NaN is another key
    if value is None or kind is TypeValue:
        return kind, getattr(value, "name", None)
    if kind is Duration or (kind is Timestamp and value.offset in _SHARED_ZONES):
        return kind, value.nanos, getattr(value, "offset", 0)
    if isinstance(value, Quantity):
        return kind, object()  # made anew each time upstream, even where it is worked out once here
    return kind, getattr(value, "key_form", id(value))


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    MapValue: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    SumQuantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
}
_GO_NAMES: Final[dict[type, str]] = {
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    MapValue: "*types.baseMap",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    TypeValue: "*types.Type",
    Optional: "*types.Optional",
    Quantity: "cel.Quantity",
    SumQuantity: "*cel.Quantity",
    Semver: "cel.Semver",
}


def type_name(value: Any) -> str:
    """The run-time type's name, as type(x) prints it."""
    name = _NAMES.get(type(value))
    return name if name is not None else str(value.type_name)


def go_type(value: Any) -> str:
    """The name that upstream's %T prints."""
    name = _GO_NAMES.get(type(value))
    return name if name is not None else str(value.go_type)


def no_overload() -> CelError:
    """The error of an operand of the wrong type."""
    return CelError("no such overload")


def is_a(t: Type, value: Any) -> bool:
    """Whether a value fits a declared type (IsAssignableRuntimeType: looks at first elements only)."""
    kind = t.kind
    if kind in {"dyn", "any", "param"}:
        return True
    if type_name(value) != t.name:
        return False
    if kind == "list":
        return not value or is_a(t.params[0], value[0])
    if kind == "map" and value.data:
        key, first = next(value.items())
        return is_a(t.params[0], key) and is_a(t.params[1], first)
    return True


def size_of(value: Any) -> int:
    """The size that costs are counted by: 1 for whatever has none."""
    kind = type(value)
    if kind is str or kind is list or kind is bytes:
        return len(value)
    if kind is MapValue:
        return len(value.data)
    if kind is Optional:
        return size_of(value.value) if value.present else 1
    return int(getattr(value, "cost_size", 1))


def show(value: Any) -> str:  # noqa: PLR0911 - one return for each type
    """A value in error texts (Go's %v)."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return go_float(value, 21)
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(show(v) for v in value) + "]"
    return type_name(value)


def go_float(  # noqa: PLR0911 - one return for each form of number
    value: float, exponent_from: int = 6
) -> str:
    """A double with Go's %g and the shortest digits; %v writes exponents only from 10**21 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if 0.001 <= value < 100_000.0 or value == 0.0:
        return text.removesuffix(".0")
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    mantissa = mantissa.lstrip("-")
    whole, _, places = mantissa.partition(".")
    places = "" if places == "0" else places
    digits = (whole + places).lstrip("0") or "0"
    leading = len(whole + places) - len((whole + places).lstrip("0"))
    point = len(whole) + (int(exponent) if exponent else 0) - (leading if digits != "0" else 0)
    digits = digits.rstrip("0") or "0"
    if digits == "0":
        return sign + "0"
    if not -4 <= point - 1 < exponent_from:
        power = point - 1
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"
