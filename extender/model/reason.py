"""Why a node is refused: stable codes, each with its kind. docs/reasons.md is made from this module.

The kind fixes the answer: a lasting reason goes to FailedNodes, or to FailedAndUnresolvableNodes where
evicting pods can't help; a passing one goes to FailedNodes while other nodes are left, else the whole answer
is an Error, which kube-scheduler retries by itself (a rejection it would only retry after an event).
"""

from __future__ import annotations

from enum import Enum, StrEnum


class Kind(Enum):
    """How long a reason stands, and whether evicting pods from the node could help."""

    LASTING = "lasting"
    UNRESOLVABLE = "lasting, evicting pods can't help"
    PASSING = "passing"


class Reason(StrEnum):
    """Codes of refusals, as they appear in events, metrics and explain."""

    DEVICE_UNHEALTHY = "DeviceUnhealthy"
    DEVICE_LOST = "DeviceLost"
    ECC_UNCORRECTABLE = "EccUncorrectable"
    ROW_REMAP_PENDING = "RowRemapPending"
    MEMORY_HELD_OUTSIDE = "MemoryHeldOutside"
    DRIVER_STALE = "DriverStale"

    @property
    def kind(self) -> Kind:
        """Which answer the reason goes to."""
        return _KINDS[self]

    @property
    def meaning(self) -> str:
        """What it means, in one sentence."""
        return _MEANINGS[self]


_KINDS = {
    Reason.DEVICE_UNHEALTHY: Kind.UNRESOLVABLE,
    Reason.DEVICE_LOST: Kind.UNRESOLVABLE,
    Reason.ECC_UNCORRECTABLE: Kind.UNRESOLVABLE,
    Reason.ROW_REMAP_PENDING: Kind.UNRESOLVABLE,
    Reason.MEMORY_HELD_OUTSIDE: Kind.LASTING,
    Reason.DRIVER_STALE: Kind.UNRESOLVABLE,
}

_MEANINGS = {
    Reason.DEVICE_UNHEALTHY: "a device that the pod would get reported a fatal XID or asks for a reset",
    Reason.DEVICE_LOST: "a device that the pod would get has fallen off the bus",
    Reason.ECC_UNCORRECTABLE: "a device that the pod would get has uncorrectable ECC errors",
    Reason.ROW_REMAP_PENDING: "a device that the pod would get waits for, or failed, a row remap",
    Reason.MEMORY_HELD_OUTSIDE: "less memory is free on a device than the pod declares, held by no known pod",
    Reason.DRIVER_STALE: "the node's agent sees no driver while its devices are still published",
}
