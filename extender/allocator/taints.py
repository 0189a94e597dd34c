"""Taints on devices: which ones block a request, and those that DeviceTaintRules add.

Owns toleration (dynamic-resource-allocation resourceclaim/devicetoleration.go) and patching slices
(resourceslice/tracker). Never: eviction, or node taints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from extender.api.resource import Device, DeviceTaint, DeviceTaintRule, DeviceToleration, ResourceSlice

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


def with_taint_rules(
    slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule]
) -> list[ResourceSlice]:
    """Return the slices with the taints of all matching rules appended, in the order of the rules' names.

    A rule without a selector matches nothing; an absent field of a selector matches everything. A slice
    that no rule touches is returned as the same object.
    """
    ordered = sorted(
        (rule for rule in rules if rule.spec.device_selector), key=lambda rule: rule.metadata.name
    )
    return [_patched(slice_, ordered) for slice_ in slices]


def _patched(slice_: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    spec = slice_.spec
    relevant = [
        (selector.device, rule.spec.taint)
        for rule in rules
        if (selector := rule.spec.device_selector) is not None
        and selector.driver in {None, spec.driver}
        and selector.pool in {None, spec.pool.name}
    ]
    if not relevant:
        return slice_
    devices = []
    changed = False
    for device in spec.devices or ():
        added = [taint for name, taint in relevant if name in {None, device.name}]
        changed = changed or bool(added)
        devices.append(
            msgspec.structs.replace(device, taints=[*(device.taints or ()), *added]) if added else device
        )
    if not changed:
        return slice_
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(spec, devices=devices))
