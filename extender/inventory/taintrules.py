"""DeviceTaintRules merged into slices, as resourceslice/tracker does it (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from extender.api.resource import Device, DeviceTaintRule, ResourceSlice
from extender.model.ids import PoolKey


def rule_covers_pool(rule: DeviceTaintRule, key: PoolKey) -> bool:
    """Whether the rule can touch a device of the pool. A rule without a selector touches none."""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return selector.driver in {None, key.driver} and selector.pool in {None, key.pool}


def with_rules(published: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of all rules that match its devices, rules in order of their names.

    A slice that no rule touches comes back as the same object.
    """
    key = PoolKey(published.spec.driver, published.spec.pool.name)
    here = sorted((r for r in rules if rule_covers_pool(r, key)), key=lambda r: r.metadata.name)
    if not here or not published.spec.devices:
        return published
    devices = [_tainted(device, here) for device in published.spec.devices]
    if all(after is before for after, before in zip(devices, published.spec.devices, strict=True)):
        return published
    return msgspec.structs.replace(published, spec=msgspec.structs.replace(published.spec, devices=devices))


def _tainted(device: Device, rules: list[DeviceTaintRule]) -> Device:
    added = [
        rule.spec.taint
        for rule in rules
        if rule.spec.device_selector is not None and rule.spec.device_selector.device in {None, device.name}
    ]
    if not added:
        return device
    return msgspec.structs.replace(device, taints=[*(device.taints or ()), *added])
