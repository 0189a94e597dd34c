"""Every fault that the comparison excuses is still upstream's: an excuse that is out of date fails here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle import known

if TYPE_CHECKING:
    from tests.oracle.client import Oracle
    from tests.oracle.subjects.subject import KnownBug

pytestmark = pytest.mark.oracle

_DEVICE: dict[str, Any] = {"driver": "gpu.example.com", "attributes": {"s": {"string": "a"}}, "capacity": {}}


def _case(device: dict[str, Any], class_selectors: list[Any], asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "features": {"consumableCapacity": True},
        "allocatedState": {},
        "node": {"name": "node-1"},
        "claimsInNamespaceOrder": [
            {
                "metadata": {"name": "claim-0"},
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "req-0",
                                "exactly": {
                                    "deviceClassName": "class-a",
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                    **asked,
                                },
                            }
                        ]
                    }
                },
            }
        ],
        "classes": [{"metadata": {"name": "class-a"}, "spec": {"selectors": class_selectors}}],
        "slices": [
            {
                "metadata": {"name": "slice-1"},
                "spec": {
                    "driver": "driver-a",
                    "pool": {"name": "pool-1", "generation": 1, "resourceSliceCount": 1},
                    "nodeName": "node-1",
                    "devices": [{"name": "device-1", **device}],
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("{1: 1, ?2: dyn(2)}.size() > 0", known.OPTIONAL_ENTRY_PANIC),
        ('{b"a": 1}.size() == 1', known.CONSTANT_KEY_PANIC),
    ],
    ids=["optional entry", "constant key"],
)
def test_the_compiler_still_panics(oracle: Oracle, expression: str, fault: KnownBug) -> None:
    [verdict] = oracle.selectors([{"expression": expression, "device": _DEVICE}])
    assert known.known_selector_fault(verdict) is fault


def test_a_class_selector_without_cel_still_panics(oracle: Oracle) -> None:
    case = _case({}, [{}], {})
    [answer] = oracle.allocations([case])
    assert known.known_allocator_fault(case, answer) is known.CLASS_SELECTOR_PANIC


def test_a_step_past_int64_still_divides_by_zero(oracle: Oracle) -> None:
    policy = {"validRange": {"min": "0", "step": "18446744073709551616"}}
    case = _case(
        {"capacity": {"memory": {"value": "4", "requestPolicy": policy}}},
        [],
        {"capacity": {"requests": {"memory": "2"}}},
    )
    [answer] = oracle.allocations([case])
    assert known.known_allocator_fault(case, answer) is known.STEP_PANIC
