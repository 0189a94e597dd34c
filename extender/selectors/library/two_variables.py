"""The function behind transformMap and transformMapEntry (cel-go ext/comprehensions.go)."""

from __future__ import annotations

from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.types import PARAM_K, PARAM_V, map_of
from extender.selectors.values import MapValue, map_key, show


def _insert(target: Any, key: Any, value: Any) -> MapValue:
    if target.contains(key):
        raise CelError(f"insert failed: key {show(key)} already exists")
    return MapValue({**target.data, map_key(key): value})


def _insert_all(target: Any, entries: Any) -> MapValue:
    made = MapValue(dict(target.data))
    for key, value in entries.items():
        if made.contains(key):
            raise CelError(f"insert failed: key {show(key)} already exists")
        made.data[map_key(key)] = value
    return made


_MAP: Final = map_of(PARAM_K, PARAM_V)

FUNCTIONS: Final = (
    Function(
        "cel.@mapInsert",
        (
            Overload("@mapInsert_map_key_value", (_MAP, PARAM_K, PARAM_V), _MAP, run=_insert, variadic=True),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, run=_insert_all),
        ),
    ),
)
