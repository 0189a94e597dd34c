"""What an operator can switch: vetoes off by ConfigMap while Berth runs, and shadow mode."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.endtoend.requests import templates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.endtoend.fleet import Fleet
    from tests.endtoend.forwarder import Forwarder
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane


@pytest.fixture
def switch(deployed: Deployed) -> Iterator[Switch]:
    """The ConfigMap; afterwards it is as shipped."""
    made = Switch(deployed)
    yield made
    made.turn(None)


class Switch:
    """The ConfigMap `berth-safety`, and when a replica has read it.

    What a replica made of it is read from its log, where it says each change; what the switch does to a veto
    that is in force is proved in test_telemetry.
    """

    def __init__(self, deployed: Deployed) -> None:
        self.turn = deployed.turn_vetoes

    @staticmethod
    def wait_said(replica: Replica, words: list[str], seconds: float = 10.0) -> None:
        """Wait until the replica has said these changes, in this order."""
        until = time.monotonic() + seconds
        while True:
            said = [line["vetoes"] for line in replica.log_lines() if line["event"] == "vetoes switched"]
            if said == words:
                return
            assert time.monotonic() < until, said
            time.sleep(0.05)


def test_the_config_map_switches_vetoes_off_and_on_while_pods_are_placed(
    fleet: Fleet, leader: Replica, switch: Switch
) -> None:
    fleet.template("one")
    switch.turn("off")
    switch.wait_said(leader, ["off"])
    fleet.wait_bound(fleet.create([fleet.pod("while-off", templates=["one"])]))
    switch.turn("on")
    switch.wait_said(leader, ["off", "on"])
    switch.turn("off")
    switch.wait_said(leader, ["off", "on", "off"])
    switch.turn(None)
    switch.wait_said(leader, ["off", "on", "off", "on"])
    fleet.wait_bound(fleet.create([fleet.pod("while-on", templates=["one"])]))


class TestShadowMode:
    """scheduler.mode: shadow."""

    @pytest.fixture
    def settings(self) -> dict[str, dict[str, Any]]:
        """Shadow mode."""
        return {"scheduler": {"mode": "shadow"}}

    def test_it_answers_yes_and_0_to_everything_and_keeps_a_record(
        self, fleet: Fleet, leader: Replica, deployed: Deployed, forwarder: Forwarder
    ) -> None:
        templates(fleet)
        names = []
        for number, template in enumerate(["one", "pair", "eight", "first"]):
            names += fleet.create([fleet.pod(f"pod-{number}", templates=[template])])
            fleet.wait_bound(names)
        token = deployed.reader_token()
        record = leader.decisions(token, fleet.namespace)
        assert {(r["shadow"], r["outcome"]) for r in record.values()} == {(True, "right")}
        assert record.keys() == set(names)

        everywhere = [f"gpu-{number:02d}" for number in range(20)] + ["cpu-00"]
        pod = {**fleet.pods()["pod-0"], "metadata": {"name": "asking", "namespace": fleet.namespace}}
        asked = {"Pod": pod, "NodeNames": everywhere}
        with leader.http(port=forwarder.port) as http:
            passed = http.post("/extender/filter", json=asked).json()
            scores = http.post("/extender/prioritize", json=asked).json()
        assert passed["NodeNames"] == everywhere
        assert not passed.get("Error")
        assert {(score["Host"], score["Score"]) for score in scores} == {(name, 0) for name in everywhere}
        with leader.http(token) as http:
            said = http.post("/api/v1/explain", json={"namespace": fleet.namespace, "name": "pod-0"})
        assert said.raise_for_status().json()["note"] == "shadow mode: every node passes and scores 0"
