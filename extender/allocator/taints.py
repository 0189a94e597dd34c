"""Taints on devices: which ones block a request.

Owns toleration (dynamic-resource-allocation resourceclaim/devicetoleration.go). Never: eviction, node taints,
or DeviceTaintRules, which the ledger merges into slices (`extender.inventory.taintrules`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extender.api.resource import Device, DeviceTaint, DeviceToleration

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
"""Other effects, None included, never keep a device from being allocated."""


def blocking_taints(device: Device) -> tuple[DeviceTaint, ...]:
    """Return the taints of a device that block unless tolerated."""
    return tuple(taint for taint in device.taints or () if taint.effect in BLOCKING_EFFECTS)


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Tell whether a toleration covers a taint: an empty effect or key covers all, Equal is the default."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def tolerated(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """Tell whether every one of the taints is tolerated."""
    return all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in taints)
