"""`text.format(args)` (cel-go ext/formatting.go, first edition) and the check of its literals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from extender.selectors.ast import ListNode, Literal, MapNode, Node
from extender.selectors.errors import CelError
from extender.selectors.library.instants import duration_text, timestamp_text
from extender.selectors.library.quoting import go_quote
from extender.selectors.types import Type
from extender.selectors.values import (
    INT64_MAX,
    Duration,
    MapValue,
    Timestamp,
    TypeValue,
    UInt,
    go_float,
    type_name,
)

_TEXT_ERROR: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations,"
    " and timestamps, was given "
)
_MESSAGES: Final = {
    "s": _TEXT_ERROR,
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_LITERAL_KINDS: Final = {
    "s": frozenset(
        [
            "list",
            "map",
            "int",
            "uint",
            "double",
            "bool",
            "string",
            "timestamp",
            "bytes",
            "duration",
            "type",
            "null",
        ]
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}
_SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_PRECISION: Final = 6
_PRINTABLE: Final = 1_000_000
"""Upstream's printer reads no further digit of a precision once it is past this."""
_UNPRINTABLE: Final = "%!(NOVERB)"
_INT16_MAX: Final = (1 << 15) - 1
_INT64_DIGITS: Final = 19
_CLAUSE: Final = re.compile(r"(\.([0-9]*))?(.?)", re.DOTALL)


class FormatError(ValueError):
    """A format that can't be carried out. `argument` is the index of the argument at fault, if one is."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


Clause = Callable[[str, int, int], str]
"""Formats argument number n by verb and precision; raises FormatError."""


def _walk(text: str, count: int, clause: Clause) -> tuple[str, int]:
    """Go through the format; return the text and how many arguments were used."""
    pieces: list[str] = []
    used = 0
    position = 0
    while position < len(text):
        found = text.find("%", position)
        if found < 0:
            pieces.append(text[position:])
            break
        pieces.append(text[position:found])
        if text[found + 1 : found + 2] == "%":
            pieces.append("%")
            position = found + 2
            continue
        if used >= count:
            raise FormatError(f"index {used} out of range")
        if found + 1 >= len(text):
            raise FormatError("unexpected end of string")
        verb, precision, position = _clause(text, found + 1)
        try:
            pieces.append(clause(verb, precision, used))
        except FormatError as error:
            raise FormatError(f"error during formatting: {error}", error.argument) from error
        used += 1
    return "".join(pieces), used


def _clause(text: str, start: int) -> tuple[str, int, int]:
    head = "could not parse formatting clause: "
    match = _CLAUSE.match(text, start)
    assert match is not None
    precision = _PRECISION
    if match[1] is not None:
        parse = head + "error while parsing precision: "
        if not match[3]:
            raise FormatError(parse + "could not find end of precision specifier")
        if not match[2]:
            raise FormatError(
                parse
                + 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        digits = match[2].lstrip("0") or "0"
        if len(digits) > _INT64_DIGITS or int(digits) > INT64_MAX:
            raise FormatError(
                parse + "error while converting precision to integer: strconv.Atoi: parsing"
                f' "{match[2]}": value out of range'
            )
        precision = int(digits)
    if match[3] not in _MESSAGES:
        shown = match[3].encode()[:1].decode("latin-1")
        raise FormatError(f'{head}unrecognized formatting clause "{shown}"')
    return match[3], precision, match.end()


def format_text(text: Any, args: Any) -> str:
    """`text.format(args)`."""

    def clause(verb: str, precision: int, place: int) -> str:
        return _formatted(verb, precision, args[place])

    try:
        return _walk(text, len(args), clause)[0]
    except FormatError as error:
        raise CelError(str(error)) from error


def _formatted(verb: str, precision: int, value: Any) -> str:
    kind = type(value)
    if verb == "s":
        return _string(value)
    if verb in {"f", "e"} and (kind is float or (kind is str and value in _SPECIAL)):
        return _float(verb, precision, float(value))
    if kind is int or kind is UInt:
        if verb == "d":
            return str(int(value))
        if verb in {"b", "o", "x", "X"}:
            return format(int(value), verb)
    if kind is bool and verb == "b":
        return "1" if value else "0"
    if verb in {"x", "X"} and (kind is str or kind is bytes):
        digits = (value.encode() if kind is str else value).hex()
        return digits.upper() if verb == "X" else str(digits)
    raise FormatError(_MESSAGES[verb] + type_name(value))


def _float(verb: str, precision: int, value: float) -> str:
    """As golang.org/x/text prints in English.

    Zero has no sign; %e has six places whatever is asked, which is its width.
    """
    if precision // 10 > _PRINTABLE:
        return _UNPRINTABLE
    width = precision & 0xFFFF
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else ("\u221e" if value > 0 else "-\u221e")
        return shown.rjust(width) if verb == "e" else shown
    value = value or 0.0
    if verb == "f":
        return _fixed_point(value, precision)
    mantissa, _, exponent = f"{value:.{_PRECISION}e}".partition("e")
    return f"{mantissa}\u00d710{_superscript(int(exponent))}".rjust(width)


def _fixed_point(value: float, precision: int) -> str:
    """Upstream keeps the least places in a byte and the most in an int16, where less than 0 is no bound."""
    least = precision & 0xFF
    most = precision & 0xFFFF
    if most <= _INT16_MAX:
        if least == most:
            return format(value, f",.{most}f")
        text = format(value, f",.{most}f")
    else:
        text = format(Decimal(repr(value)), ",f")
    whole, _, places = text.partition(".")
    places = places.rstrip("0").ljust(least, "0")
    shown = f"{whole}.{places}" if places else whole
    return shown.removeprefix("-") if not shown.strip("-0.") else shown


def _superscript(exponent: int) -> str:
    digits = {
        **dict(
            zip("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", strict=True)
        ),
        "-": "\u207b",
    }
    return "".join(digits[char] for char in f"{'-' if exponent < 0 else ''}{abs(exponent):02d}")


def _string(value: Any) -> str:  # noqa: PLR0911 - one return for each type
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return go_float(value)
    if kind is bytes:
        try:
            return str(value.decode())
        except UnicodeDecodeError:
            raise FormatError("could not convert argument to string") from None
    if kind is Timestamp:
        return timestamp_text(value)
    if kind is Duration:
        return duration_text(value)
    if kind is TypeValue:
        return str(value.name)
    if kind is list:
        return "[" + ", ".join(_element(item) for item in value) + "]"
    if kind is MapValue:
        return _map(value)
    raise FormatError(_TEXT_ERROR + type_name(value))


def _element(value: Any) -> str:  # noqa: PLR0911 - one return for each type
    """A member of a list or map: texts quoted, doubles with six places."""
    kind = type(value)
    if kind is str:
        return go_quote(value)
    if kind is float:
        if not math.isfinite(value):
            return f'"{go_float(value)}"'
        return f"{value:.{_PRECISION}f}"
    if kind is bytes:
        return "b" + go_quote(_string(value))
    if kind is Timestamp:
        return f'timestamp("{_string(value)}")'
    if kind is Duration:
        return f'duration("{_string(value)}")'
    if kind is TypeValue:
        return str(value.name)
    if kind in {bool, int, UInt, type(None), list, MapValue}:
        return _string(value)
    raise FormatError(f"no formatting function for {type_name(value)}")


def _map(value: MapValue) -> str:
    pairs: list[tuple[str, str]] = []
    for key, item in value.items():
        if type(key) not in {str, bool, int, UInt}:
            raise FormatError(f"no formatting function for map key of type {type_name(key)}")
        pairs.append((_element(key), _element(item)))
    pairs.sort(key=lambda pair: pair[0].encode())
    return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"


def check_literal(text: str, args: list[Node]) -> tuple[Node | None, str] | None:
    """Check a constant format against its arguments' types; return (the node at fault or None, message)."""

    def clause(verb: str, _precision: int, place: int) -> str:
        node = args[place]
        bad = _bad_text(node) if verb == "s" else _bad_kind(node, _LITERAL_KINDS[verb])
        if bad is not None:
            raise FormatError(_MESSAGES[verb] + bad.type.name, place)
        return ""

    try:
        _, used = _walk(text, len(args), clause)
    except FormatError as error:
        return (None if error.argument is None else args[error.argument]), str(error)
    if len(args) > used:
        return None, f"too many arguments supplied to string.format (expected {used}, got {len(args)})"
    return None


def _bad_kind(node: Node, kinds: frozenset[str]) -> Node | None:
    t: Type = node.type
    return None if t.kind == "dyn" or t.kind in kinds else node


def _bad_text(node: Node) -> Node | None:
    bad = _bad_kind(node, _LITERAL_KINDS["s"])
    if bad is not None or isinstance(node, Literal):
        return bad
    parts: list[Node] = []
    if isinstance(node, ListNode):
        parts = node.elements
    elif isinstance(node, MapNode):
        parts = [part for key, value, _ in node.entries for part in (key, value)]
    return next((found for part in parts if (found := _bad_text(part)) is not None), None)
