"""cel-go's string functions, version 2 (ext/strings.go). format() is in `formatting`."""

from __future__ import annotations

from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.library.formatting import format_text
from extender.selectors.types import DYN, INT, STRING, list_of
from extender.selectors.values import no_overload

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003"
    "\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_MAX_RESULT: Final = 16 << 20
"""Longest text that a replacement may make; upstream has no bound but memory."""


def _char_at(text: Any, index: Any) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return str(text[index : index + 1])


def _index_of(text: Any, part: Any, offset: Any = 0) -> int:
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    if not part:
        return min(int(offset), len(text))
    return -1 if offset >= len(text) else int(text.find(part, offset))


def _last_index_of(text: Any, part: Any) -> int:
    return len(text) if not part else int(text.rfind(part))


def _last_index_of_offset(text: Any, part: Any, offset: Any) -> int:
    if offset < 0:
        raise CelError(f"index out of range: {offset}")
    if not part:
        return min(int(offset), len(text))
    if offset >= len(text):
        return -1
    return int(text.rfind(part, 0, offset + len(part)))


def _lower(text: Any) -> str:
    return str(text.translate(_LOWER))


def _upper(text: Any) -> str:
    return str(text.translate(_UPPER))


def _replace(text: Any, old: Any, new: Any, count: Any = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    times = found if count < 0 else min(found, count)
    if len(text) + times * len(new) > _MAX_RESULT:
        raise CelError("replace: result is too long")
    return str(text.replace(old, new, times))


def _split(text: Any, separator: Any, count: Any = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        if count < 0 or count >= len(text):
            return list(text)
        return [*text[: count - 1], text[count - 1 :]]
    return str(text).split(separator, -1 if count < 0 else count - 1)


def _substring(text: Any, start: Any) -> str:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return str(text[start:])


def _substring_range(text: Any, start: Any, end: Any) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= len(text):
            raise CelError(f"index out of range: {place}")
    return str(text[start:end])


def _trim(text: Any) -> str:
    return str(text.strip(_SPACE))


def quote(text: Any) -> str:
    """`strings.quote(text)`."""
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


def _join(values: Any, separator: Any = "") -> str:
    for value in values:
        if type(value) is not str:
            raise no_overload()
    if sum(map(len, values)) + len(separator) * len(values) > _MAX_RESULT:
        raise CelError("join: result is too long")
    return str(separator.join(values))


def _member(id_: str, result: Any, run: Any, *args: Any, variadic: bool = False) -> Overload:
    return Overload(id_, (STRING, *args), result, member=True, run=run, variadic=variadic)


_STRINGS: Final = list_of(STRING)

FUNCTIONS: Final = (
    Function("charAt", (_member("string_char_at_int", STRING, _char_at, INT),)),
    Function(
        "indexOf",
        (
            _member("string_index_of_string", INT, _index_of, STRING),
            _member("string_index_of_string_int", INT, _index_of, STRING, INT),
        ),
    ),
    Function(
        "lastIndexOf",
        (
            _member("string_last_index_of_string", INT, _last_index_of, STRING),
            _member("string_last_index_of_string_int", INT, _last_index_of_offset, STRING, INT),
        ),
    ),
    Function("lowerAscii", (_member("string_lower_ascii", STRING, _lower),)),
    Function("upperAscii", (_member("string_upper_ascii", STRING, _upper),)),
    Function(
        "replace",
        (
            _member("string_replace_string_string", STRING, _replace, STRING, STRING),
            _member("string_replace_string_string_int", STRING, _replace, STRING, STRING, INT),
        ),
    ),
    Function(
        "split",
        (
            _member("string_split_string", _STRINGS, _split, STRING),
            _member("string_split_string_int", _STRINGS, _split, STRING, INT),
        ),
    ),
    Function(
        "substring",
        (
            _member("string_substring_int", STRING, _substring, INT),
            _member("string_substring_int_int", STRING, _substring_range, INT, INT),
        ),
    ),
    Function("trim", (_member("string_trim", STRING, _trim),)),
    Function("format", (_member("string_format", STRING, format_text, list_of(DYN), variadic=True),)),
    Function("strings.quote", (Overload("strings_quote", (STRING,), STRING, run=quote),)),
    Function(
        "join",
        (
            Overload("list_join", (_STRINGS,), STRING, member=True, run=_join),
            Overload("list_join_string", (_STRINGS, STRING), STRING, member=True, run=_join),
        ),
    ),
)
