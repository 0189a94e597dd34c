from __future__ import annotations

import pytest

from extender.allocator.taints import blocking_taints, tolerated, tolerates
from extender.api.resource import (
    DeviceTaint,
    DeviceToleration,
)
from tests.allocator.builders import device

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
        (DeviceToleration("heat", "Exists", toleration_seconds=0), True),  # eviction alone looks at it
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
