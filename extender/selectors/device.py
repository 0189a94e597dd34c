"""A device as an expression sees it: its facts turned into run-time values, once.

Owns default domains (a name without "/" belongs to the driver's domain), the maps' defaults and which
published values can't be read (dynamic-resource-allocation cel/compile.go DeviceMatches).
"""

from __future__ import annotations

from typing import Any

from extender.api.quantity import Quantity, QuantityError
from extender.api.resource import DeviceAttribute
from extender.model.device import DeviceFacts
from extender.selectors.library.quantity import bounded
from extender.selectors.semver import Semver, SemverError
from extender.selectors.values import MapValue


class Prepared:
    """A device ready to be evaluated against. Make it with `prepare`; it never changes.

    `attributes` and `capacity` map domain to id to value. `fault` says why the device can't be evaluated in
    an environment with list values, `list_fault` why not in one without. Of a name published with and without
    the driver's domain the qualified one counts (upstream leaves it to chance).
    """

    __slots__ = ("attributes", "capacity", "device", "driver", "fault", "list_fault", "multi")

    def __init__(self, facts: DeviceFacts) -> None:
        self.driver = facts.driver
        self.multi = bool(facts.allow_multiple_allocations)
        self.fault: str | None = None
        self.list_fault: str | None = None
        self.attributes: dict[str, dict[str, Any]] = {}
        self.capacity: dict[str, dict[str, Any]] = {}
        for name, attribute in facts.attributes.items():
            domain, id_ = qualified(name, facts.driver)
            value = self._attribute(name, attribute)
            ids = self.attributes.setdefault(domain, {})
            if "/" in name or id_ not in ids:
                ids[id_] = value
        for name, capacity in facts.capacity.items():
            domain, id_ = qualified(name, facts.driver)
            quantity = self._quantity(name, capacity.value)
            ids = self.capacity.setdefault(domain, {})
            if "/" in name or id_ not in ids:
                ids[id_] = quantity
        self.device: MapValue | None = None

    def whole(self) -> MapValue:
        """The device itself as a map."""
        if self.device is None:
            self.device = MapValue(
                {
                    "driver": self.driver,
                    "allowMultipleAllocations": self.multi,
                    "attributes": outer_map(self.attributes),
                    "capacity": outer_map(self.capacity),
                }
            )
        return self.device

    def _attribute(self, name: str, attribute: DeviceAttribute) -> Any:
        try:
            value = attribute_value(attribute)
        except SemverError as error:
            self._fail(f"attribute {name}: parse semantic version: {error}")
            return None
        if value is None:
            self._fail(f"attribute {name}: unsupported attribute value")
        elif isinstance(value, list):
            self.list_fault = self.list_fault or f"attribute {name}: unsupported attribute value"
        return value

    def _fail(self, text: str) -> None:
        self.fault = self.fault or text
        self.list_fault = self.list_fault or text

    def _quantity(self, name: str, value: Any) -> Quantity | None:
        try:
            return bounded(Quantity.of(value))
        except QuantityError as error:
            self._fail(f"capacity {name}: {error}")
            return None


def prepare(facts: DeviceFacts) -> Prepared:
    """Turn a device's facts into values; evaluate many selectors against the result."""
    return Prepared(facts)


def outer_map(domains: dict[str, dict[str, Any]]) -> MapValue:
    """The map of domains, in which a missing domain is an empty map."""
    return MapValue({domain: MapValue(ids) for domain, ids in domains.items()}, MapValue({}))


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Split a published name into domain and id; the driver is the default domain."""
    domain, slash, id_ = name.partition("/")
    return (domain, id_) if slash else (driver, name)


def attribute_value(attribute: DeviceAttribute) -> Any:  # noqa: PLR0911 - one return for each kind of value
    """The one value that is set, None without any; raise SemverError for a bad version."""
    if attribute.ints is not None:
        return list(attribute.ints)
    if attribute.bools is not None:
        return list(attribute.bools)
    if attribute.strings is not None:
        return list(attribute.strings)
    if attribute.versions is not None:
        return [Semver.parse(text) for text in attribute.versions]
    if attribute.int is not None:
        return attribute.int
    if attribute.bool is not None:
        return attribute.bool
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return Semver.parse(attribute.version)
    return None
