"""Regular expressions: matches, find, findAll (cel-go standard library, apiserver library/regex.go).

Owns RE2 through google-re2 and the translation of its error texts into Go's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import re2

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.types import INT, STRING, list_of
from extender.selectors.values import Optional, TypeValue, no_overload

_MAX_MEMORY: Final = 8 << 20
_PIECE: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)"  # quoted
    r"|\\(?P<escape>.)"
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*+(?:\]|\\?\Z)"  # a class
    r"|\{(?P<least>0|[1-9][0-9]*)(?:,(?P<most>[1-9][0-9]*)?)?\}",
    re.DOTALL,
)
"""What a pattern may hold in which \\C and braces are plain text, and those that are not."""
_COUNT_DIGITS: Final = 9
"""Longest count of a repetition that is one to RE2 in C++; a longer one makes the braces plain text there."""
_GO_TEXTS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid character class range": "invalid character class range",
    "invalid escape sequence": "invalid escape sequence",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid UTF-8": "invalid UTF-8",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


class PatternError(ValueError):
    """The pattern is none of RE2. The message is Go's."""


def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; raise PatternError."""
    _refuse_what_only_one_knows(pattern)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.never_nl = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError(_go_text(error, pattern)) from error


def _refuse_what_only_one_knows(pattern: str) -> None:
    """Raise PatternError for what RE2 in C++ takes and Go does not: any byte, and counts of ten digits."""
    for found in _PIECE.finditer(pattern):
        if found["escape"] == "C":
            raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
        if max(len(found["least"] or ""), len(found["most"] or "")) > _COUNT_DIGITS:
            raise PatternError(f"error parsing regexp: invalid repeat count: `{found[0]}`")


def _go_text(error: Exception, pattern: str) -> str:
    raw = error.args[0] if error.args else ""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    reason, _, detail = text.partition(": ")
    known = _GO_TEXTS.get(reason)
    if known is None:
        return f"error parsing regexp: {text}"
    if reason == "unexpected )" and not detail:
        detail = pattern
    return f"error parsing regexp: {known}: `{detail}`" if detail else f"error parsing regexp: {known}"


def matches(text: Any, pattern: Any) -> bool:
    """`text.matches(pattern)`, unanchored."""
    if type(pattern) is not str:
        raise no_overload()
    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        raise CelError(str(error)) from error
    return compiled.search(text) is not None


def _find_with(compiled: Any, text: str) -> str:
    found = compiled.search(text)
    return "" if found is None else str(found.group())


def _all_with(compiled: Any, text: str, limit: int) -> list[str]:
    """All matches as Go finds them: no empty one right behind another, none within a character."""
    results: list[str] = []
    if limit == 0:
        return results
    data = text.encode()  # in bytes the library need not count characters for each match
    before = -1
    for found in compiled.finditer(data):
        start, end = found.span()
        if start == end and (start == before or _within_character(data, start)):
            continue
        before = end
        results.append(data[start:end].decode())
        if len(results) == limit:
            break
    return results


def _within_character(data: bytes, place: int) -> bool:
    return place < len(data) and data[place] & 0xC0 == 0x80


def _held_text(value: Any) -> str:
    """The text of a value that holds one, as the calls with a constant pattern take it (Go's Value())."""
    while type(value) is Optional and value.present:
        value = value.value
    if type(value) is TypeValue:
        return str(value.name)
    if type(value) is not str:
        raise no_overload()
    return str(value)


def _dynamic(pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise CelError(f"Illegal regex: {error}") from error


def find(text: Any, pattern: Any) -> str:
    """`text.find(pattern)`: the first match, or an empty string."""
    return _find_with(_dynamic(pattern), text)


def find_all(text: Any, pattern: Any, limit: int = -1) -> list[str]:
    """`text.findAll(pattern, limit)`."""
    return _all_with(_dynamic(pattern), text, limit)


def precompiled(function: str, pattern: str) -> Callable[..., Any] | None:
    """The implementation of a call with a constant pattern (it is still given the pattern), or None.

    Raises PatternError, which makes the program impossible.
    """
    if function not in {"matches", "find", "findAll"}:
        return None
    compiled = compile_pattern(pattern)
    if function == "matches":
        seen: dict[str, bool] = {}

        def run_matches(text: Any, _pattern: Any) -> bool:
            if type(text) is not str:
                text = _held_text(text)
            known = seen.get(text)
            if known is None:
                known = compiled.search(text) is not None
                if len(seen) < _SEEN and len(text) <= _SEEN_LENGTH:
                    seen[text] = known
            return known

        return run_matches
    if function == "find":

        def run_find(text: Any, _pattern: Any) -> str:
            return _find_with(compiled, _held_text(text))

        return run_find

    def run_all(text: Any, _pattern: Any, limit: Any = -1) -> list[str]:
        if type(limit) is not int:
            raise no_overload()
        return _all_with(compiled, _held_text(text), limit)

    return run_all


_SEEN: Final = 1024
"""Texts whose match is remembered per constant pattern: a search costs several microseconds."""
_SEEN_LENGTH: Final = 256
"""Longest text that is remembered: attributes have 64 characters, but an expression can make millions."""

FUNCTIONS: Final = (
    Function("find", (Overload("string_find_string", (STRING, STRING), STRING, member=True, run=find),)),
    Function(
        "findAll",
        (
            Overload("string_find_all_string", (STRING, STRING), list_of(STRING), member=True, run=find_all),
            Overload(
                "string_find_all_string_int",
                (STRING, STRING, INT),
                list_of(STRING),
                member=True,
                run=find_all,
            ),
        ),
    ),
)
