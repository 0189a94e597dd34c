"""cel-go's list functions, version 3 (ext/lists.go)."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.equality import COMPARABLE, compare, same
from extender.selectors.errors import CelError
from extender.selectors.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    PARAM_T,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
)
from extender.selectors.values import no_overload

_COMPARABLE_TYPES: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_MAX_RANGE: Final = 1_000_000
"""Longest range (cel-go 0.29; before there was no limit but the cost)."""


def _slice(values: Any, start: Any, end: Any) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return list(values[start:end])


def _flatten(values: Any, depth: Any = 1) -> list[Any]:
    if type(values) is not list or type(depth) is not int:
        raise no_overload()
    if depth < 0:
        raise CelError("level must be non-negative")
    result: list[Any] = []
    for value in values:
        if type(value) is list and depth:
            result.extend(_flatten(value, depth - 1))
        else:
            result.append(value)
    return result


def _sort_by_keys(values: Any, keys: Any) -> list[Any]:
    if type(keys) is not list:
        raise no_overload()
    if len(values) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list,"
            f" but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return list(values)
    kind = type(keys[0])
    if kind not in COMPARABLE:
        raise CelError("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not kind for key in keys):
        raise CelError("list elements must have the same type")

    # NaN orders as equal to all, as a failed comparison does upstream; ties keep their order here.
    def order(left: int, right: int) -> int:
        return _order(keys[left], keys[right])

    return [values[place] for place in sorted(range(len(keys)), key=cmp_to_key(order))]


def _order(left: Any, right: Any) -> int:
    try:
        return compare(left, right)
    except CelError:
        return 0


def _sort(values: Any) -> list[Any]:
    return _sort_by_keys(values, values)


def _range(count: Any) -> list[int]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > _MAX_RANGE:
        raise CelError(f"lists.range: size {count} exceeds maximum allowed ({_MAX_RANGE})")
    return list(range(count))


def _distinct(values: Any) -> list[Any]:
    unique: list[Any] = []
    for place, value in enumerate(values):
        # Upstream skips the comparison at equal places of both lists.
        if not any(place != other and same(value, seen) for other, seen in enumerate(unique)):
            unique.append(value)
    return unique


_LIST: Final = list_of(PARAM_T)
_LISTS: Final = frozenset({list})

FUNCTIONS: Final = (
    Function(
        "slice",
        (Overload("list_slice", (_LIST, INT, INT), _LIST, member=True, run=_slice, variadic=True),),
    ),
    Function(
        "flatten",
        (
            Overload("list_flatten", (list_of(_LIST),), _LIST, member=True, run=_flatten),
            Overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), member=True, run=_flatten),
        ),
        guarded=False,
    ),
    Function(
        "sort",
        tuple(
            Overload(f"list_{t.name}_sort", (list_of(t),), list_of(t), member=True) for t in _COMPARABLE_TYPES
        ),
        _sort,
        _LISTS,
    ),
    Function(
        "@sortByAssociatedKeys",
        tuple(
            Overload(f"list_{t.name}_sortByAssociatedKeys", (_LIST, list_of(t)), _LIST, member=True)
            for t in _COMPARABLE_TYPES
        ),
        _sort_by_keys,
        _LISTS,
    ),
    Function("lists.range", (Overload("lists_range", (INT,), list_of(INT), run=_range),)),
    Function(
        "reverse",
        (Overload("list_reverse", (_LIST,), _LIST, member=True, run=lambda values: values[::-1]),),
    ),
    Function("distinct", (Overload("list_distinct", (_LIST,), _LIST, member=True, run=_distinct),)),
)
