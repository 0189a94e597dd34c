"""Makes a failing input small: the smallest steps down that keep it failing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_T = TypeVar("_T")


def shrunk(
    made: _T, smaller: Callable[[_T], Iterator[_T]], fails: Callable[[_T], bool], seconds: float
) -> _T:
    """Follow the first smaller input that still fails, until none does or the time is up."""
    deadline = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for candidate in smaller(made):
            if time.monotonic() > deadline:
                break
            if fails(candidate):
                made = candidate
                progress = True
                break
    return made


def smaller_json(value: Any) -> Iterator[Any]:
    """The value with one element or member left out, or with one scalar made plainer, outermost first."""
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            for less in smaller_json(item):
                yield {**value, key: less}
    elif isinstance(value, list):
        for at in range(len(value)):
            yield value[:at] + value[at + 1 :]
        for at, item in enumerate(value):
            for less in smaller_json(item):
                yield [*value[:at], less, *value[at + 1 :]]
    elif value is True:
        yield False
    elif isinstance(value, int) and value > 1:
        yield 1
