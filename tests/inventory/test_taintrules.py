from __future__ import annotations

from extender.api.meta import ObjectMeta
from extender.api.resource import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from extender.inventory.taintrules import with_rules

_HEAT = DeviceTaint("heat", "", "NoSchedule")


def _slice(*devices: Device) -> ResourceSlice:
    pool = ResourcePool("pool-1", 1, 1)
    return ResourceSlice(
        ObjectMeta(name="slice-1"),
        ResourceSliceSpec("driver.example.com", pool, "node-1", devices=list(devices)),
    )


def _rule(name: str, selector: DeviceTaintSelector | None) -> DeviceTaintRule:
    return DeviceTaintRule(
        ObjectMeta(name=name), DeviceTaintRuleSpec(selector, DeviceTaint(name, "", "NoExecute"))
    )


def test_rules_add_their_taints_to_the_devices_they_select() -> None:
    published = _slice(Device("a", taints=[_HEAT]), Device("b"))
    rules = [
        _rule("z-all", DeviceTaintSelector()),
        _rule("b-alone", DeviceTaintSelector("driver.example.com", "pool-1", "b")),
        _rule("other-driver", DeviceTaintSelector("other.example.com")),
        _rule("other-pool", DeviceTaintSelector(pool="pool-2")),
        _rule("nothing", None),
    ]
    patched = with_rules(published, rules)
    taints = [[taint.key for taint in item.taints or ()] for item in patched.spec.devices or ()]
    assert taints == [["heat", "z-all"], ["b-alone", "z-all"]]
    assert [item.taints for item in published.spec.devices or ()] == [[_HEAT], None]


def test_a_slice_that_no_rule_touches_stays_the_same_object() -> None:
    published = _slice(Device("a"))
    rules = [_rule("b-alone", DeviceTaintSelector(device="b")), _rule("nothing", None)]
    assert with_rules(published, rules) is published
