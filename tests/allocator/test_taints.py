from __future__ import annotations

import pytest

from extender.allocator.taints import blocking_taints, tolerated, tolerates, with_taint_rules
from extender.api.meta import ObjectMeta
from extender.api.resource import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
)
from tests.allocator.builders import DRIVER, device, slice_of

_TAINT = DeviceTaint("heat", "high", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (DeviceToleration("heat", "Exists"), True),
        (DeviceToleration("", "Exists"), True),
        (DeviceToleration("heat", "Equal", "high"), True),
        (DeviceToleration("heat", "", "high"), True),
        (DeviceToleration("heat", "Equal", "low"), False),
        (DeviceToleration("heat", "Exists", effect="NoSchedule"), True),
        (DeviceToleration("heat", "Exists", effect="NoExecute"), False),
        (DeviceToleration("cold", "Exists"), False),
        (DeviceToleration("heat", "Like", "high"), False),
    ],
)
def test_tolerations_cover_taints_as_the_api_says(toleration: DeviceToleration, covered: bool) -> None:
    assert tolerates(toleration, _TAINT) == covered


def test_only_known_effects_block() -> None:
    effects = ["NoSchedule", "NoExecute", "None", "", "Future"]
    gpu = device("gpu", taints=[DeviceTaint("key", "", effect) for effect in effects])
    assert [taint.effect for taint in blocking_taints(gpu)] == ["NoSchedule", "NoExecute"]


def test_every_taint_needs_a_toleration() -> None:
    cold = DeviceTaint("cold", "", "NoExecute")
    heat = [DeviceToleration("heat", "Exists")]
    assert tolerated([_TAINT], heat)
    assert not tolerated([_TAINT, cold], heat)
    assert tolerated([], [])


def _rule(name: str, selector: DeviceTaintSelector | None) -> DeviceTaintRule:
    return DeviceTaintRule(
        ObjectMeta(name=name), DeviceTaintRuleSpec(selector, DeviceTaint(name, "", "NoExecute"))
    )


def test_rules_add_their_taints_to_the_devices_they_select() -> None:
    published = slice_of([device("a", taints=[_TAINT]), device("b")])
    rules = [
        _rule("z-all", DeviceTaintSelector()),
        _rule("b-alone", DeviceTaintSelector(DRIVER, "pool-1", "b")),
        _rule("other-driver", DeviceTaintSelector("other.example.com")),
        _rule("other-pool", DeviceTaintSelector(pool="pool-2")),
        _rule("nothing", None),
    ]
    [patched] = with_taint_rules([published], rules)
    taints = [[taint.key for taint in item.taints or ()] for item in patched.spec.devices or ()]
    assert taints == [["heat", "z-all"], ["b-alone", "z-all"]]
    assert [item.taints for item in published.spec.devices or ()] == [[_TAINT], None]


def test_a_slice_that_no_rule_touches_stays_the_same_object() -> None:
    published = slice_of([device("a")])
    rules = [_rule("b-alone", DeviceTaintSelector(device="b")), _rule("nothing", None)]
    assert with_taint_rules([published], rules)[0] is published
