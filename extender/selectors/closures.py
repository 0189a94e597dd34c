"""What operators and literals become: && and ||, comparisons with a constant text, lists, maps.

Owns their order of evaluation, absorption of errors and charges. The planner chooses among them.
"""

from __future__ import annotations

from typing import Any

from extender.selectors.cost import equality, tenth
from extender.selectors.equality import equal
from extender.selectors.errors import CelError
from extender.selectors.frame import Eval, Frame, charge, exceeded
from extender.selectors.values import MapValue, Optional, map_key, no_overload, show, size_of


def unequal(left: Any, right: Any) -> bool:
    """`left != right`: an error of equality counts as different."""
    try:
        return not equal(left, right)
    except CelError:
        return True


def equal_text(left: Eval, text: str, *, negated: bool) -> Eval:
    """== and != with a constant text, the most frequent comparison."""
    length = len(text)
    costs = tuple(tenth(min(n, length)) for n in range(length + 1))
    unit = tenth(min(1, length))

    def run(frame: Frame) -> bool:
        try:
            value = left(frame)
        except CelError:
            charge(frame, unit)
            raise
        if type(value) is str:
            frame.left = rest = frame.left - costs[min(len(value), length)]
            if rest < 0:
                exceeded(frame, units=False)
            return (value == text) is not negated
        try:
            alike = equal(value, text)
        except CelError:
            if not negated:
                charge(frame, equality(value, text))
                raise
            alike = False
        charge(frame, tenth(min(size_of(value), length)) if negated else equality(value, text))
        return alike is not negated

    return run


def two_terms(first: Eval, second: Eval, *, stops: bool) -> Eval:
    """&& (or ||) of two terms; `stops` is the value that decides alone."""

    def run(frame: Frame) -> bool:
        try:
            value = first(frame)
        except CelError as error:
            return _absorb(frame, error, second, stops=stops)
        if value is stops:
            return stops is True
        if not isinstance(value, bool):
            return _absorb(frame, no_overload(), second, stops=stops)
        value = second(frame)
        if not isinstance(value, bool):
            raise no_overload()
        return value

    return run


def _absorb(frame: Frame, failure: CelError, second: Eval, *, stops: bool) -> bool:
    """The first term failed: the second may still decide."""
    try:
        value = second(frame)
    except CelError:
        raise failure from None
    if value is stops:
        return stops is True
    raise failure


def many_terms(terms: tuple[Eval, ...], *, stops: bool) -> Eval:
    """&& (or ||) of many terms, as a chain of two-term ones would be."""

    def run(frame: Frame) -> bool:
        failure: CelError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelError as error:
                failure = failure or error
                continue
            if value is stops:
                return stops is True
            if type(value) is not bool:
                failure = failure or no_overload()
        if failure is not None:
            raise failure
        return not stops

    return run


def list_maker(elements: tuple[Eval, ...], optional: frozenset[int]) -> Eval:
    """Makes a list from its elements; does not charge."""
    if not optional:
        return lambda frame: [element(frame) for element in elements]

    def run(frame: Frame) -> list[Any]:
        values: list[Any] = []
        for place, element in enumerate(elements):
            value = element(frame)
            if place in optional:
                if type(value) is not Optional:
                    raise CelError(
                        f"cannot initialize optional list element from non-optional value {show(value)}"
                    )
                if value.present:
                    values.append(value.value)
            else:
                values.append(value)
        return values

    return run


def map_maker(entries: tuple[tuple[Eval, Eval, bool], ...]) -> Eval:
    """Makes a map from its entries; does not charge."""

    def run(frame: Frame) -> MapValue:
        data: dict[Any, Any] = {}
        for make_key, make_value, optional in entries:
            key = make_key(frame)
            value = make_value(frame)
            form = map_key(key)
            if optional:
                if type(value) is not Optional:
                    what = f"optional entry '{show(key)}' from non-optional value {show(value)}"
                    raise CelError(f"cannot initialize {what}")
                if not value.present:
                    data.pop(form, None)
                    continue
                value = value.value
            data[form] = value
        return MapValue(data)

    return run


def read_anew(read: Eval) -> Eval:
    """A key from the device: upstream makes lists and maps of it anew at each reading, so no two are one key.

    Its maps of domains, and the empty map of a domain that it does not have, are made once there as well.
    """

    def run(frame: Frame) -> Any:
        value = read(frame)
        if type(value) is list:
            return list(value)
        if type(value) is MapValue and value.data:
            return MapValue(value.data, value.default)
        return value

    return run


def insert_pair(target: Any, key: Any, value: Any) -> MapValue:
    """Put an entry into an accumulator's map; a key that is there is an error."""
    if type(target) is not MapValue:
        raise CelError("no such overload: cel.@mapInsert")
    if target.contains(key):
        raise CelError(f"insert failed: key {show(key)} already exists")
    target.data[map_key(key)] = value
    return target


def insert_map(target: Any, more: Any) -> MapValue:
    """Put all entries of a map into an accumulator's map."""
    if type(target) is not MapValue or type(more) is not MapValue:
        raise CelError("no such overload: cel.@mapInsert")
    for key, value in more.items():
        insert_pair(target, key, value)
    return target
