"""A bound on work that upstream's cost does not count.

Upstream prices a call by the size of what it is given at the top, so a few hundred bytes can build lists that
share their parts and then compare, print or join what would be an exponential tree; upstream itself does not
come back from such a selector. Owns how that work is measured. A program counts it down in its frame and ends
with Aborted, which nothing absorbs. Selectors that stay below the limit never notice.
"""

from __future__ import annotations

from typing import Any, Final

from extender.selectors.errors import Aborted
from extender.selectors.frame import Eval, Frame
from extender.selectors.values import MapValue, Optional

_CONTAINERS: Final = frozenset({list, MapValue, Optional})
_FREE_LENGTH: Final = 64
"""Longest text whose reading is not counted."""
_ZONE: Final = 600
"""Work of looking a time zone up in files."""
_NESTED_WEIGHT: Final = 8
"""Nested values are visited more slowly than flat lists."""


def tree_size(value: Any, limit: int) -> int:
    """The work of visiting a value and all within it, shared parts each time; stops just above the limit."""
    kind = type(value)
    if kind not in _CONTAINERS:
        return 1
    if kind is list and _CONTAINERS.isdisjoint(map(type, value)):
        return 1 + len(value)
    count = 0
    stack = [value]
    while stack and count <= limit:
        node = stack.pop()
        kind = type(node)
        if kind is list:
            parts = node
        elif kind is MapValue:
            parts = list(node.data.values())
        else:
            parts = [node.value] if node.present else []
        count += _NESTED_WEIGHT * (1 + len(parts))
        stack.extend(part for part in parts if type(part) in _CONTAINERS)
    return count


def spend(frame: Frame, work: int) -> None:
    """Count work down; raise Aborted when none is left."""
    frame.work = left = frame.work - work
    if left < 0:
        raise Aborted("operation cancelled: the values that the expression makes are too large")


def visited(arg: Eval, *, pairwise: bool = False) -> Eval:
    """The argument's closure, which counts all that is in its value; its square where pairs are compared."""

    def run(frame: Frame) -> Any:
        value = arg(frame)
        if type(value) in _CONTAINERS:
            size = tree_size(value, frame.work)
            nested = pairwise and type(value) is list and size > 1 + len(value)
            spend(frame, size * size if nested else size)
        return value

    return run


def read(arg: Eval, least: int) -> Eval:
    """The argument's closure, which counts a long text by its characters; any text counts `least`."""

    def run(frame: Frame) -> Any:
        value = arg(frame)
        if type(value) is str and (least or len(value) > _FREE_LENGTH):
            spend(frame, max(least, len(value)))
        return value

    return run


def made(run: Eval, weight: int = 1) -> Eval:
    """The closure, which counts the length of what it makes."""

    def counted(frame: Frame) -> Any:
        value = run(frame)
        kind = type(value)
        if kind is list or kind is str:
            spend(frame, weight * len(value))
        return value

    return counted


PAIRWISE: Final = frozenset({"distinct", "sets.contains", "sets.equivalent", "sets.intersects"})
"""Functions that compare each value with each other; upstream prices that for flat lists."""
VISITING: Final = PAIRWISE | {
    "_==_",
    "_!=_",
    "@in",
    "includes",
    "indexOf",
    "lastIndexOf",
    "format",
    "flatten",
    "isSorted",
    "sum",
    "min",
    "max",
    "join",
}
"""Functions that look into their arguments."""
READING: Final = {
    "int": (0, 0),
    "uint": (0, 0),
    "double": (0, 0),
    "duration": (0, 0),
    **dict.fromkeys(
        (
            "getFullYear",
            "getMonth",
            "getDayOfYear",
            "getDayOfMonth",
            "getDate",
            "getDayOfWeek",
            "getHours",
            "getMinutes",
            "getSeconds",
            "getMilliseconds",
        ),
        (1, _ZONE),
    ),
}
"""Functions that read a text at a constant price: which argument it is, and the least work of reading it."""
MAKING: Final = {
    "_+_": 1,
    "replace": 1,
    "split": 1,
    "format": 2,
    "findAll": 4,
    "flatten": 1,
    "strings.quote": 1,
}
"""Functions whose results can be longer than their price tells, and the work of one piece or character."""
