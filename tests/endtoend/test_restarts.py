"""Berth dies, or is not there: nothing is lost, pods wait and then go on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.endtoend.books import assert_ledger_equals_api, assert_no_drift, granted_twice
from tests.endtoend.requests import mixed, shared_claims, templates

if TYPE_CHECKING:
    from tests.endtoend.fleet import Fleet
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane


@pytest.fixture
def settings() -> dict[str, dict[str, Any]]:
    """The drift check comes often."""
    return {"kube": {"driftSeconds": 2}}


STREAM = 60
PAUSE_S = 0.05


def test_killed_amid_a_stream_of_pods_and_started_again_nothing_is_lost(
    fleet: Fleet, leader: Replica, deployed: Deployed
) -> None:
    templates(fleet)
    shared_claims(fleet, STREAM)
    token = deployed.reader_token()
    names = [f"pod-{number:03d}" for number in range(STREAM)]
    pause = threading.Event()

    def stream() -> None:
        for number in range(STREAM):
            fleet.create([mixed(fleet, number)])
            pause.wait(PAUSE_S)

    feeding = threading.Thread(target=stream)
    feeding.start()
    try:
        fleet.wait_created(STREAM // 3)
        leader.kill()
        unbound = [name for name, pod in fleet.pods().items() if not pod["spec"].get("nodeName")]
    finally:
        feeding.join()
    assert len(fleet.pods()) == STREAM
    leader.start()
    leader.wait_ready()
    print(f"killed with {len(unbound)} pods waiting and {STREAM - STREAM // 3} to come")
    fleet.wait_bound(names, seconds=90)

    assert not granted_twice(fleet.admin)
    assert_ledger_equals_api(leader, token, fleet.admin)
    assert_no_drift(leader)


def test_while_berth_is_down_pods_wait_and_then_go_on(
    fleet: Fleet, leader: Replica, deployed: Deployed
) -> None:
    fleet.template("one")
    assert deployed.extender()["ignorable"] is False
    leader.stop()
    kinds: list[list[str]] = [[], ["one"]]
    names = fleet.create(fleet.pod(f"pod-{number}", templates=kinds[number % 2]) for number in range(10))
    pods = fleet.wait_tried(names)
    assert [name for name, pod in pods.items() if pod["spec"].get("nodeName")] == []

    leader.start()
    leader.wait_ready()
    fleet.wait_bound(names)
