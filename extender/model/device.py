"""What a selector can see of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.api.resource import DeviceAttribute, DeviceCapacity


class DeviceID(NamedTuple):
    """A device in the cluster: driver, pool and name within the pool."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The `device` variable of a selector (dynamic-resource-allocation cel/compile.go).

    `attributes` and `capacity` are keyed as published: a name without "/" belongs to the driver's own domain.
    """

    driver: str
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    allow_multiple_allocations: bool = False
