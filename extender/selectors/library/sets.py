"""Lists as sets (cel-go ext/sets.go)."""

from __future__ import annotations

from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.library.operators import contained
from extender.selectors.types import BOOL, PARAM_T, list_of


def _contains(whole: Any, part: Any) -> bool:
    return all(contained(item, whole) for item in part)


def _equivalent(left: Any, right: Any) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: Any, right: Any) -> bool:
    return any(contained(item, right) for item in left)


_PAIR: Final = (list_of(PARAM_T), list_of(PARAM_T))

FUNCTIONS: Final = (
    Function("sets.contains", (Overload("list_sets_contains_list", _PAIR, BOOL, run=_contains),)),
    Function("sets.equivalent", (Overload("list_sets_equivalent_list", _PAIR, BOOL, run=_equivalent),)),
    Function("sets.intersects", (Overload("list_sets_intersects_list", _PAIR, BOOL, run=_intersects),)),
)
