"""Kubernetes' list functions (apiserver library/lists.go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.equality import COMPARABLE, compare, same
from extender.selectors.errors import CelError
from extender.selectors.library.operators import add
from extender.selectors.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    PARAM_A,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
)
from extender.selectors.values import Duration, UInt, no_overload

_SUMMABLE: Final[tuple[tuple[str, Type, Any], ...]] = (
    ("int", INT, 0),
    ("uint", UINT, UInt(0)),
    ("double", DOUBLE, 0.0),
    ("duration", DURATION, Duration(0)),
)
_ORDERED: Final = (
    ("int", INT),
    ("uint", UINT),
    ("double", DOUBLE),
    ("bool", BOOL),
    ("duration", DURATION),
    ("timestamp", TIMESTAMP),
    ("string", STRING),
    ("bytes", BYTES),
)


def _is_sorted(values: Any) -> bool:
    previous: list[Any] = []
    for value in values:
        if type(value) not in COMPARABLE:
            raise no_overload()
        if previous:
            try:
                if compare(previous[0], value) == 1:
                    return False
            except CelError:
                pass  # upstream looks for 1 only; an error passes
        previous = [value]
    return True


def _sum(start: Any) -> Callable[[Any], Any]:
    def run(values: Any) -> Any:
        total = start
        for value in values:
            total = add(total, value)
        return total

    return run


def _extreme(name: str, replaced_when: int) -> Callable[[Any], Any]:
    def run(values: Any) -> Any:
        found: list[Any] = []
        for value in values:
            if type(value) not in COMPARABLE:
                raise no_overload()
            if not found:
                found = [value]
                continue
            try:
                if compare(found[0], value) == replaced_when:
                    found = [value]
            except CelError:
                pass  # upstream looks for one answer only; an error passes
        if not found:
            raise CelError(f"{name} called on empty list")
        return found[0]

    return run


def _index_of(values: Any, item: Any) -> int:
    return next((place for place, value in enumerate(values) if same(value, item)), -1)


def _last_index_of(values: Any, item: Any) -> int:
    return next((place for place in range(len(values) - 1, -1, -1) if same(values[place], item)), -1)


def _includes(limit: int) -> Callable[[Any, Any], bool]:
    def run(target: Any, item: Any) -> bool:
        if type(target) is not list:
            return same(target, item)
        if limit and len(target) > limit:
            raise CelError(f"list has {len(target)} elements, more than the {limit} that includes allows")
        return any(same(value, item) for value in target)

    return run


def _for_each(name: str, run: Callable[[Any], Any], suffix: str) -> Function:
    return Function(
        name,
        tuple(
            Overload(
                f"list_{kind}_{suffix.format(kind)}",
                (list_of(t),),
                BOOL if name == "isSorted" else t,
                member=True,
                run=run,
            )
            for kind, t in _ORDERED
        ),
    )


def includes(limit: int) -> tuple[Function, ...]:
    """`x.includes(y)`, for lists of at most so many elements (0: any)."""
    overload = Overload("list_includes_dyn_dyn", (DYN, DYN), BOOL, member=True, run=_includes(limit))
    return (Function("includes", (overload,)),)


_ANY_LIST: Final = (list_of(PARAM_A), PARAM_A)

FUNCTIONS: Final = (
    _for_each("isSorted", _is_sorted, "is_sorted_bool"),
    Function(
        "sum",
        tuple(
            Overload(f"list_{kind}_sum_{kind}", (list_of(t),), t, member=True, run=_sum(start))
            for kind, t, start in _SUMMABLE
        ),
    ),
    _for_each("max", _extreme("max", -1), "max_{}"),
    _for_each("min", _extreme("min", 1), "min_{}"),
    Function("indexOf", (Overload("list_a_index_of_int", _ANY_LIST, INT, member=True, run=_index_of),)),
    Function(
        "lastIndexOf",
        (Overload("list_a_last_index_of_int", _ANY_LIST, INT, member=True, run=_last_index_of),),
    ),
)
