"""Two replicas: one answers, the other takes over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from tests.endtoend.fleet import Fleet
    from tests.endtoend.forwarder import Forwarder
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane

KILLED_S = 15.0
TOLD_S = 8.0
"""The Lease itself binds for 10 s: sooner, it must have been released."""


@pytest.fixture
def follower(deployed: Deployed, leader: Replica) -> Replica:
    """A second replica, synced, not leading."""
    assert leader.process is not None
    replica = deployed.replica("berth-1")
    replica.start()
    replica.wait_ready()
    return replica


def request_for(nodes: list[str]) -> dict[str, Any]:
    """Filter arguments of a pod that asks for a GPU and exists nowhere."""
    resources = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
    pod = {
        "metadata": {"name": "asking", "namespace": "default"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "resources": resources}],
        },
    }
    return {"Pod": pod, "NodeNames": nodes}


def seconds_until_answered_by(replica: Replica, forwarder: Forwarder, since: float) -> float:
    """From `since` until a new connection through the Service leads to `replica` and its answer is good."""
    asked = request_for(["gpu-00", "gpu-01"])
    while True:
        try:
            if forwarder.target == replica.name:
                with replica.http(port=forwarder.port) as http:
                    answer = http.post("/extender/filter", json=asked).json()
                if not answer.get("Error") and answer["NodeNames"] == asked["NodeNames"]:
                    return time.monotonic() - since
        except httpx.HTTPError:
            pass  # nobody answers until the other replica leads
        assert time.monotonic() - since < 60
        time.sleep(0.05)


def test_a_follower_refuses_and_closes_the_connection_but_shows_the_fleet(
    deployed: Deployed, follower: Replica
) -> None:
    asked = request_for(["a"])
    binding = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
    with follower.http(deployed.reader_token()) as http:
        said = {
            verb: http.post(f"/extender/{verb}", json=binding if verb == "bind" else asked)
            for verb in ("filter", "prioritize", "preempt", "bind")
        }
        assert http.get("/api/v1/fleet").status_code == 200
    assert all(answer.headers["connection"] == "close" for answer in said.values())
    assert said["filter"].json()["Error"] == "another replica of berth leads"
    assert said["bind"].json()["Error"] == "another replica of berth leads"
    assert said["prioritize"].json() == []
    assert said["preempt"].status_code == 400


def test_a_killed_leader_is_replaced_in_time_and_pods_go_on(
    fleet: Fleet, leader: Replica, follower: Replica, forwarder: Forwarder
) -> None:
    fleet.template("one")
    fleet.wait_bound(fleet.create(fleet.pod(f"before-{n}", templates=["one"]) for n in range(5)))
    killed = time.monotonic()
    leader.kill(noticed=False)  # its Pod stays Ready: only the label leads away from it
    names = fleet.create(fleet.pod(f"after-{n}", templates=["one"]) for n in range(10))
    took = seconds_until_answered_by(follower, forwarder, killed)
    print(f"the other replica answered {took:.1f} s after the leader was killed")
    fleet.wait_bound(names)
    assert forwarder.target == follower.name
    assert took <= KILLED_S


def test_a_leader_that_is_told_to_end_is_replaced_sooner(
    fleet: Fleet, leader: Replica, follower: Replica, forwarder: Forwarder
) -> None:
    fleet.template("one")
    told = time.monotonic()
    leader.terminate()
    took = seconds_until_answered_by(follower, forwarder, told)
    print(f"the other replica answered {took:.1f} s after the leader was told to end")
    leader.stop()
    fleet.wait_bound(fleet.create(fleet.pod(f"pod-{n}", templates=["one"]) for n in range(5)))
    assert forwarder.target == follower.name
    assert took <= TOLD_S
