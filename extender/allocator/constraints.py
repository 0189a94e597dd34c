"""Constraints of a claim: devices must share an attribute, or differ in it.

Owns matchAttribute and distinctAttribute with the semantics after upstream's fixes: a distinct value is
compared with every device picked so far, and backtracking restores what was there. Never: requests' names,
which the caller resolves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from extender.api.resource import DeviceAttribute

from .candidates import Candidate

AttributeLookup = Callable[[Candidate, str], DeviceAttribute | None]
"""Finds an attribute of a device as the request sees it: derived ones first, then published ones."""

Scalar = tuple[str, int | bool | str] | None
"""Type and value; None for a type that is not known."""
ValueSet = tuple[str, frozenset[int | bool | str]] | None


class Constraint(Protocol):
    """Devices are added and removed in stack order."""

    def add(self, candidate: Candidate, lookup: AttributeLookup) -> bool:
        """Take a device in, or refuse it and stay as before."""

    def remove(self) -> None:
        """Take out the device that was added last."""


class MatchScalar:
    """All devices have the same value of the same type; versions compare as strings."""

    __slots__ = ("_attribute", "_count", "_first")

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute
        self._count = 0
        self._first: Scalar = None

    def add(self, candidate: Candidate, lookup: AttributeLookup) -> bool:
        """Take the device in when its value is that of the first one."""
        attribute = lookup(candidate, self._attribute)
        if attribute is None:
            return False
        value = scalar_of(attribute)
        if self._count == 0:
            self._first = value
        elif value is None or value != self._first:
            return False
        self._count += 1
        return True

    def remove(self) -> None:
        """Forget the device that came last."""
        self._count -= 1


class MatchSet:
    """The values of all devices have something in common; a scalar counts as a list of one."""

    __slots__ = ("_attribute", "_common")

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute
        self._common: list[tuple[str, frozenset[int | bool | str]]] = []

    def add(self, candidate: Candidate, lookup: AttributeLookup) -> bool:
        """Take the device in when the common values do not become empty."""
        attribute = lookup(candidate, self._attribute)
        value = None if attribute is None else set_of(attribute)
        if value is None:
            return False
        if self._common:
            kind, common = self._common[-1]
            narrowed = common & value[1]
            if kind != value[0] or not narrowed:
                return False
            value = kind, narrowed
        self._common.append(value)
        return True

    def remove(self) -> None:
        """Restore what was common before the device that came last."""
        self._common.pop()


class DistinctScalar:
    """No two devices have the same value; values of different types differ."""

    __slots__ = ("_attribute", "_values")

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute
        self._values: list[Scalar] = []

    def add(self, candidate: Candidate, lookup: AttributeLookup) -> bool:
        """Take the device in when nobody has its value yet."""
        attribute = lookup(candidate, self._attribute)
        if attribute is None:
            return False
        value = scalar_of(attribute)
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True

    def remove(self) -> None:
        """Forget the device that came last."""
        self._values.pop()


class DistinctSet:
    """The values of the devices are pairwise disjoint."""

    __slots__ = ("_attribute", "_values")

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute
        self._values: list[tuple[str, frozenset[int | bool | str]]] = []

    def add(self, candidate: Candidate, lookup: AttributeLookup) -> bool:
        """Take the device in when it has no value that another one has."""
        attribute = lookup(candidate, self._attribute)
        value = None if attribute is None else set_of(attribute)
        if value is None:
            return False
        if any(kind == value[0] and not known.isdisjoint(value[1]) for kind, known in self._values):
            return False
        self._values.append(value)
        return True

    def remove(self) -> None:
        """Forget the device that came last."""
        self._values.pop()


def scalar_of(attribute: DeviceAttribute) -> Scalar:
    """Return the scalar of an attribute; lists and unknown types are None."""
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int is not None:
        return "int", attribute.int
    if attribute.bool is not None:
        return "bool", attribute.bool
    if attribute.version is not None:
        return "version", attribute.version
    return None


def set_of(attribute: DeviceAttribute) -> ValueSet:
    """Return all values of an attribute, None when it has none of a known type."""
    lists: tuple[tuple[str, list[int] | list[bool] | list[str] | None], ...] = (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    )
    for kind, values in lists:
        if values:
            return kind, frozenset(values)
    scalar = scalar_of(attribute)
    return None if scalar is None else (scalar[0], frozenset({scalar[1]}))


def published_attribute(candidate: Candidate, name: str) -> DeviceAttribute | None:
    """Find an attribute by its full name; the bare name counts when the domain is the driver."""
    attributes = candidate.device.attributes
    if not attributes:
        return None
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, bare = name.partition("/")
    return attributes.get(bare) if slash and domain == candidate.id.driver else None
