"""A fast reader of the Prometheus text exposition, for big texts of which few metrics matter.

Never: types, help, exemplars, or what a metric means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_LINE: Final = re.compile(
    r"([A-Za-z_:][A-Za-z0-9_:]*)"
    r"(?:\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?"
    r"[ \t]+([^ \t]+)(?:[ \t]+(-?\d+))?"
)
_LABEL: Final = re.compile(r'[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "\\": "\\", '"': '"'}


class Series(NamedTuple):
    """One sample line."""

    name: str
    labels: dict[str, str]
    value: float


class ExpositionError(ValueError):
    """A line that is no sample; the text names its number."""


def parse(text: str, prefix: str = "") -> Iterator[Series]:
    """The samples whose names start with `prefix`. Raises ExpositionError at the first malformed one."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith(prefix) or line.startswith("#") or not line.strip():
            continue
        found = _LINE.fullmatch(line.strip(" \t\r"))
        if found is None:
            raise ExpositionError(f"line {number}: not a sample: {line[:80]!r}")
        try:
            value = float(found[3])
        except ValueError as fault:
            raise ExpositionError(f"line {number}: {found[3][:40]!r} is not a number") from fault
        yield Series(found[1], _labels(found[2] or "", number), value)


def _labels(text: str, number: int) -> dict[str, str]:
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise ExpositionError(f"line {number}: not a label: {text[at : at + 80]!r}")
        value = found[2]
        labels[found[1]] = _unescape(value) if "\\" in value else value
        at = found.end()
    return labels


def _unescape(value: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], "\\" + found[1]), value)
