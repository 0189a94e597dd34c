"""What calls cost at run time (cel-go interpreter/runtimecost.go, apiserver pkg/cel/library/cost.go).

Owns the price of each call by function and overload; counting is the planner's. A price is a number, or a
function of the arguments and the result in which FAILED stands for an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from extender.api.quantity import Quantity
from extender.selectors.errors import Aborted
from extender.selectors.library.cidr import CidrValue
from extender.selectors.library.format import FormatValue
from extender.selectors.library.ip import IpValue
from extender.selectors.library.url import UrlValue
from extender.selectors.semver import Semver
from extender.selectors.values import MapValue, SumQuantity, size_of


class Failed:
    """Stands for an error where an argument or a result would be; its size is 1."""

    __slots__ = ()


FAILED: Final = Failed()

Price = int | Callable[[Sequence[Any], Any], int]

LIST: Final = 10
MAP: Final = 30
STRUCT: Final = 40
_TENTH: Final = 0.1
_TABLE: Final = tuple(math.ceil(n * _TENTH) for n in range(1024))
_UNIT_EQUALITY: Final = frozenset({Quantity, SumQuantity, IpValue, CidrValue, FormatValue, UrlValue, Semver})


def tenth(n: int) -> int:
    """ceil(n * 0.1) in float64, as upstream counts."""
    return _TABLE[n] if n < 1024 else math.ceil(n * _TENTH)


def equality(left: Any, right: Any) -> int:
    """The price of == (and of != but for Kubernetes' types)."""
    if type(left) in _UNIT_EQUALITY:
        return 1
    return tenth(min(size_of(left), size_of(right)))


def _equals(args: Sequence[Any], _result: Any) -> int:
    return equality(args[0], args[1])


def _shorter(args: Sequence[Any], _result: Any) -> int:
    return tenth(min(size_of(args[0]), size_of(args[1])))


def _both(args: Sequence[Any], _result: Any) -> int:
    return tenth(size_of(args[0]) + size_of(args[1]))


def _first(args: Sequence[Any], _result: Any) -> int:
    return tenth(size_of(args[0]))


def _second(args: Sequence[Any], _result: Any) -> int:
    return tenth(size_of(args[1]))


def _in_list(args: Sequence[Any], _result: Any) -> int:
    return size_of(args[1])


def _regex(args: Sequence[Any], _result: Any) -> int:
    return math.ceil((1.0 + size_of(args[0])) * _TENTH) * math.ceil(size_of(args[1]) * 0.25)


def _contains(args: Sequence[Any], _result: Any) -> int:
    return tenth(size_of(args[0])) * tenth(size_of(args[1]))


def _twice_first(args: Sequence[Any], _result: Any) -> int:
    return math.ceil(size_of(args[0]) * 2.0 * _TENTH)


def _twice_result(_args: Sequence[Any], result: Any) -> int:
    return math.ceil(size_of(result) * 2.0 * _TENTH)


def _traversal(args: Sequence[Any], _result: Any) -> int:
    return traversal(args[0]) if args else 0


def traversal(value: Any) -> int:
    """The price of visiting all of a value; texts count their bytes, rounded down."""
    if type(value) is str:
        return int(len(value.encode()) * _TENTH)
    if type(value) is bytes:
        return int(len(value) * _TENTH)
    if type(value) is list:
        return sum(traversal(item) for item in value)
    if type(value) is MapValue:
        return sum(traversal(key) + traversal(item) for key, item in value.items())
    return 1


def _contains_ip(of_text: bool) -> Callable[[Sequence[Any], Any], int]:
    def price(args: Sequence[Any], _result: Any) -> int:
        own = size_of(args[0])
        return tenth(own + own) + (tenth(size_of(args[1])) if of_text else 0)

    return price


def _contains_cidr(of_text: bool) -> Callable[[Sequence[Any], Any], int]:
    def price(args: Sequence[Any], _result: Any) -> int:
        own = size_of(args[0])
        return tenth(own + own) + tenth(own) + 1 + (tenth(size_of(args[1])) if of_text else 0)

    return price


def _validate(args: Sequence[Any], _result: Any) -> int:
    if not isinstance(args[0], FormatValue):
        return 1
    text = math.ceil((1.0 + size_of(args[1])) * _TENTH)
    return text * math.ceil(args[0].regex_size * 0.25)


def _output(_args: Sequence[Any], result: Any) -> int:
    return size_of(result) + 1 + LIST


def _flatten(args: Sequence[Any], _result: Any) -> int:
    depth = 1.0
    if len(args) == 2:
        if type(args[1]) is not int:
            raise Aborted("internal error: interface conversion: ref.Val is not types.Int")
        depth = float(args[1])
    if depth < 0.0:
        depth = 1.0
    return int(size_of(args[0]) * depth) + 1 + LIST


def _self_compare(place: int) -> Callable[[Sequence[Any], Any], int]:
    def price(args: Sequence[Any], _result: Any) -> int:
        values = args[place]
        if type(values) is not list:
            raise Aborted("internal error: interface conversion: ref.Val is not traits.Lister")
        factor = 2.0 + (_TENTH if values and type(values[0]) in {str, bytes} else 0.0)
        return int(len(values) ** 2 * factor) + 1 + LIST

    return price


def _sets(factor: int) -> Callable[[Sequence[Any], Any], int]:
    def price(args: Sequence[Any], _result: Any) -> int:
        return 1 + size_of(args[0]) * size_of(args[1]) * factor

    return price


AFTERWARDS: Final = frozenset({_twice_result, _output})
"""Prices that need the result; others are due before the call, so that one too dear is never carried out."""

_BY_OVERLOAD_FIRST: Final[dict[str, Price]] = {
    "list_slice": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _output,
    "list_reverse": _output,
    "list_distinct": _self_compare(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
_BY_FUNCTION: Final[dict[str, Price]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversal),
    **dict.fromkeys(
        (
            "url",
            "lowerAscii",
            "upperAscii",
            "substring",
            "trim",
            "cidr",
            "isIP",
            "isCIDR",
            "quantity",
            "isQuantity",
            "semver",
            "isSemver",
        ),
        _first,
    ),
    "replace": _twice_first,
    "split": _twice_first,
    "ip.isCanonical": _twice_first,
    "join": _twice_result,
    "find": _regex,
    "findAll": _regex,
    "validate": _validate,
    "_==_": _equals,
}
_BY_OVERLOAD: Final[dict[str, Price]] = {
    "starts_with_string": _second,
    "ends_with_string": _second,
    "string_to_bytes": _first,
    "bytes_to_string": _first,
    "strings_quote": _first,
    "string_format": _first,
    "in_list": _in_list,
    "not_equals": _shorter,
    "add_string": _both,
    "add_bytes": _both,
    "matches": _regex,
    "matches_string": _regex,
    "contains_string": _contains,
    **{
        f"{name}_{kind}": _shorter
        for name in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    },
}


def price(function: str, overload: str) -> Price:  # noqa: PLR0911 - one return for each table upstream
    """What a call costs. `overload` is its id, or empty when several are possible at run time."""
    found = _BY_OVERLOAD_FIRST.get(overload)
    if found is not None:
        return found
    if overload.startswith("list_"):
        if overload.endswith("_sortByAssociatedKeys"):
            return _self_compare(1)
        if overload.endswith("_sort"):
            return _self_compare(0)
    if function == "ip":
        return 1 if overload == "cidr_ip" else _first
    if function == "containsIP":
        return _contains_ip(overload == "cidr_contains_ip_string")
    if function == "containsCIDR":
        return _contains_cidr(overload == "cidr_contains_cidr_string")
    found = _BY_FUNCTION.get(function)
    if found is None:
        found = _BY_OVERLOAD.get(overload)
    return 1 if found is None else found
