"""Optional values (cel-go cel/library.go). or() and orValue() are lazy and evaluated by the planner."""

from __future__ import annotations

from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.types import (
    BOOL,
    DYN,
    INT,
    PARAM_K,
    PARAM_V,
    STRING,
    list_of,
    map_of,
    optional_of,
)
from extender.selectors.values import NONE, Duration, MapValue, Optional, Timestamp, show

_OPTIONAL: Final = optional_of(PARAM_V)
_LIST: Final = list_of(PARAM_V)
_MAP: Final = map_of(PARAM_K, PARAM_V)


def _is_zero(value: Any) -> bool:
    if isinstance(value, MapValue):
        return not value.data
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == -62135596800 * 10**9
    return value is None or (isinstance(value, (bool, int, float, str, bytes, list)) and not value)


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _value(optional: Any) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _unwrap(values: Any) -> list[Any]:
    result: list[Any] = []
    for value in values:
        if not isinstance(value, Optional):
            raise CelError(f"value {show(value)} is not optional")
        if value.present:
            result.append(value.value)
    return result


def _first(values: Any) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: Any) -> Optional:
    return Optional(values[-1]) if values else NONE


FUNCTIONS: Final = (
    Function("optional.of", (Overload("optional_of", (PARAM_V,), _OPTIONAL, run=Optional),)),
    Function(
        "optional.ofNonZeroValue",
        (Overload("optional_ofNonZeroValue", (PARAM_V,), _OPTIONAL, run=_of_non_zero),),
    ),
    Function("optional.none", (Overload("optional_none", (), _OPTIONAL, run=lambda: NONE),)),
    Function("value", (Overload("optional_value", (_OPTIONAL,), PARAM_V, member=True, run=_value),)),
    Function(
        "hasValue",
        (Overload("optional_hasValue", (_OPTIONAL,), BOOL, member=True, run=lambda o: o.present),),
    ),
    Function("or", (Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, member=True),)),
    Function("orValue", (Overload("optional_orValue_value", (_OPTIONAL, PARAM_V), PARAM_V, member=True),)),
    Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),)),
    Function(
        "_[?_]",
        (
            Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
            Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("map_optindex_optional_value", (_MAP, PARAM_K), _OPTIONAL),
            Overload("optional_map_optindex_optional_value", (optional_of(_MAP), PARAM_K), _OPTIONAL),
        ),
    ),
    Function(
        "_[_]",
        (
            Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
            Overload("optional_map_index_value", (optional_of(_MAP), PARAM_K), _OPTIONAL),
        ),
    ),
    Function("last", (Overload("list_last", (_LIST,), _OPTIONAL, member=True, run=_last),)),
    Function("first", (Overload("list_first", (_LIST,), _OPTIONAL, member=True, run=_first),)),
    Function(
        "optional.unwrap",
        (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, run=_unwrap),),
    ),
    Function(
        "unwrapOpt",
        (Overload("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, member=True, run=_unwrap),),
    ),
)
