from __future__ import annotations

import msgspec
import pytest

from extender.admission.nudging import kept_waiting, reasons_in
from extender.api.core import Pod
from extender.model.reason import Reason

MESSAGE = (
    "0/4 nodes are available: 1 DeviceLost: the device that the pod would get has fallen off the bus, "
    "2 DeviceUnhealthy: the device that the pod would get is unhealthy, 1 Insufficient cpu. "
    "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
)


def pod(message: str = MESSAGE, *, status: str = "False", node: str = "", gated: bool = False) -> Pod:
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {
            "nodeName": node,
            "containers": [],
            "schedulingGates": [{"name": "berth.scheduler/placement"}] if gated else [],
        },
        "status": {"conditions": [{"type": "PodScheduled", "status": status, "message": message}]},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def test_a_conditions_message_counts_nodes_by_our_codes() -> None:
    assert reasons_in(MESSAGE) == {Reason.DEVICE_LOST: 1, Reason.DEVICE_UNHEALTHY: 2}


def test_the_words_of_others_are_no_reasons() -> None:
    assert reasons_in("0/3 nodes are available: 3 cannot allocate all claims.") == {}
    assert reasons_in("DeviceLost") == {}


def test_a_pod_waits_by_its_condition() -> None:
    assert kept_waiting(pod())[Reason.DEVICE_LOST] == 1


@pytest.mark.parametrize("one", [pod(node="n"), pod(gated=True), pod(status="True"), pod("")])
def test_a_pod_that_is_placed_gated_or_refused_by_others_does_not_wait_for_us(one: Pod) -> None:
    assert not kept_waiting(one)
