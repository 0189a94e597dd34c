"""Which optional parts of the allocator are on.

Owns the switches and their defaults by Kubernetes version. Never: reading settings or feature gates itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Features:
    """The switches of the structured allocator (dynamic-resource-allocation structured/internal/types.go).

    `device_binding_and_status` stands for the gates DRADeviceBindingConditions and
    DRAResourceClaimDeviceStatus together; every other switch is the gate of the same name.
    """

    admin_access: bool = False
    compatibility_groups: bool = False
    consumable_capacity: bool = False
    derived_attributes: bool = False
    device_binding_and_status: bool = False
    device_taints: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = False
    prioritized_list: bool = False

    @classmethod
    def of(cls, switches: Mapping[str, bool]) -> Features:
        """Read switches by their wire names ("adminAccess"); an unknown name raises ValueError."""
        known = {_camel(field.name): field.name for field in fields(cls)}
        unknown = sorted(set(switches) - set(known))
        if unknown:
            raise ValueError(
                f"unknown allocator feature {unknown[0]!r}, known are: {', '.join(sorted(known))}"
            )
        return cls(**{known[name]: bool(value) for name, value in switches.items()})

    @classmethod
    def default(cls, version: str) -> Features:
        """Return what is on by default in a Kubernetes version ("1.37", "v1.36.2"); from 1.38 on as in 1.37.

        Source: the versioned gate table of the scheduler (1.34 to 1.37).
        """
        major, minor = _version(version)
        if (major, minor) < (1, 36):
            return cls(admin_access=True, prioritized_list=True)
        return cls(
            admin_access=True,
            consumable_capacity=True,
            device_binding_and_status=True,
            device_taints=True,
            fractional_capacity_range=(major, minor) >= (1, 37),
            partitionable_devices=True,
            prioritized_list=True,
        )

    @property
    def needs_experimental(self) -> bool:
        """Whether the scheduler picks its experimental allocator for these switches.

        That one looks at skipNodeOperations of slices even while the feature is off; the others do not.
        """
        return (
            self.list_type_attributes
            or self.optional_node_operations
            or self.derived_attributes
            or self.compatibility_groups
        )


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def _version(text: str) -> tuple[int, int]:
    parts = text.removeprefix("v").split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError) as error:
        raise ValueError(f"Kubernetes version {text!r} is not like 1.37") from error
