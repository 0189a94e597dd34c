"""Device classes, and the extended resources that they stand for (KEP-5004)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.api.resource import DeviceClass
from extender.inventory.requests import IMPLICIT_CLASS_PREFIX


@dataclass(frozen=True, slots=True)
class Classes:
    """All classes by name, and the class behind each explicit extended resource name."""

    by_name: Mapping[str, DeviceClass]
    by_extended_resource: Mapping[str, str]

    def for_extended_resource(self, resource: str) -> str | None:
        """Name of the class that backs `resource`, None when none does."""
        if resource.startswith(IMPLICIT_CLASS_PREFIX):
            name = resource.removeprefix(IMPLICIT_CLASS_PREFIX)
            return name if name in self.by_name else None
        return self.by_extended_resource.get(resource)


class ClassTable:
    """Classes as watched; the ledger is its only writer."""

    def __init__(self) -> None:
        self._by_name: dict[str, DeviceClass] = {}
        self._view: Classes | None = None

    def upsert(self, device_class: DeviceClass) -> None:
        """Add or replace a class."""
        self._by_name[device_class.metadata.name] = device_class
        self._view = None

    def delete(self, name: str) -> None:
        """Forget a class."""
        self._by_name.pop(name, None)
        self._view = None

    def view(self) -> Classes:
        """The classes as they stand.

        Of several classes with one extended resource name the newest wins, a tie goes to the first name
        (dynamic-resource-allocation deviceclass/extendedresourcecache).
        """
        if self._view is None:
            chosen: dict[str, DeviceClass] = {}
            for candidate in sorted(self._by_name.values(), key=lambda c: c.metadata.name):
                resource = candidate.spec.extended_resource_name
                if not resource:
                    continue
                held = chosen.get(resource)
                if held is None or _created(candidate) > _created(held):
                    chosen[resource] = candidate
            self._view = Classes(
                dict(self._by_name), {resource: c.metadata.name for resource, c in chosen.items()}
            )
        return self._view


def _created(device_class: DeviceClass) -> str:
    return device_class.metadata.creation_timestamp or ""
