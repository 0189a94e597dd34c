"""The predicted devices are the allocated ones: pod by pod always, in a burst nearly always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.endtoend.requests import mixed, shared_claims, templates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.endtoend.fleet import Fleet, Object
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane

BURST = 200


@pytest.fixture
def settings() -> dict[str, dict[str, Any]]:
    """At debug the order of replies and of seen allocations is in the log."""
    return {"logging": {"level": "debug"}}


@dataclass(frozen=True)
class Miss:
    """A prediction that was wrong, or not made (with the reason), and what the pod got.

    Devices are (claim, request, device).
    """

    pod: str
    predicted: set[tuple[str, str, str]]
    got: set[tuple[str, str, str]]
    unpredicted: str = ""

    @property
    def differing(self) -> set[str]:
        """Devices that the pod was expected to take and did not, and those that it took in their place."""
        return {device for *_, device in self.predicted ^ self.got}


@dataclass(frozen=True)
class Compared:
    """Pods with devices by how their predictions came out."""

    right: list[str]
    missed: list[Miss]

    @property
    def share(self) -> float:
        """Right ones of all."""
        return len(self.right) / max(1, len(self.right) + len(self.missed))


def compare(fleet: Fleet, decisions: dict[str, Any], names: Iterable[str]) -> Compared:
    """Hold the decision record against the claims in the API server."""
    pods, claims = fleet.pods(), fleet.claims()
    found = Compared([], [])
    for name in names:
        got = fleet.devices_of(pods[name], claims)
        if not got:
            continue
        decision = decisions[name]
        assert decision["node"] == pods[name]["spec"]["nodeName"], decision
        assert decision["outcome"] != "pending", decision
        predicted = {(d["claim"], d["request"], d["device"]) for d in decision["predicted"]}
        if predicted == got:
            found.right.append(name)
        else:
            found.missed.append(Miss(name, predicted, got, decision["unpredicted"]))
    return found


class Order:
    """What Berth said and saw, by line of its log: one event loop writes it, in the order of what happens."""

    def __init__(self, lines: Sequence[Object], fleet: Fleet) -> None:
        self._replied: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        for number, line in enumerate(lines):
            if line["event"] == "decision":
                self._replied[line["pod"].partition("/")[2]] = number
            elif line["event"] == "allocation seen":
                self._seen[line["claim"].partition("/")[2]] = number
        self._holder: dict[str, str] = {}
        self._pods: dict[str, list[str]] = {}
        for name, claim in fleet.claims().items():
            status = claim.get("status", {})
            self._pods[name] = [each["name"] for each in status.get("reservedFor") or ()]
            for result in status.get("allocation", {}).get("devices", {}).get("results") or ():
                self._holder[f"{result['driver']}/{result['pool']}/{result['device']}"] = name

    def cause(self, miss: Miss) -> str:
        """Who had taken a device while we could not know of it; "" when nobody had.

        kube-scheduler works on one pod at a time, so a pod that we answered earlier chose earlier; we could
        not know of its choice when its allocation reached our watch after our reply. The device is one that
        we predicted, or that of a claim which the pod shares with the earlier one.
        """
        replied = self._replied[miss.pod]
        for device in sorted(miss.differing):
            claim = self._holder.get(device)
            seen = self._seen.get(claim or "", -1) - replied
            for pod in self._pods.get(claim or "", ()):
                answered = self._replied.get(pod, replied) - replied
                if pod != miss.pod and answered < 0 < seen:
                    return f"{device} taken by pod {pod}: answered at {answered} lines, seen at +{seen}"
        return ""


def test_one_at_a_time_every_prediction_is_right(fleet: Fleet, leader: Replica, deployed: Deployed) -> None:
    templates(fleet)
    shared_claims(fleet, 40)
    token = deployed.reader_token()
    names = []
    for number in range(40):
        names += fleet.create([mixed(fleet, number)])
        fleet.wait_bound(names[-1:])
    found = compare(fleet, leader.decisions(token, fleet.namespace), names)
    assert not found.missed
    assert len(found.right) == len([n for n in names if fleet.pods()[n]["spec"]["nodeName"][:3] == "gpu"])
    assert len(found.right) > 20


def test_in_a_burst_nearly_every_prediction_is_right(
    fleet: Fleet, leader: Replica, deployed: Deployed
) -> None:
    templates(fleet)
    shared_claims(fleet, BURST)
    token = deployed.reader_token()
    names = fleet.create(mixed(fleet, number) for number in range(BURST))
    bound = fleet.wait_most_bound(names)
    found = compare(fleet, leader.decisions(token, fleet.namespace), bound)
    order = Order(leader.log_lines(), fleet)
    causes = {miss.pod: order.cause(miss) for miss in found.missed}
    print(
        f"{len(bound)} of {BURST} pods bound; of those with devices {len(found.right)} predicted right, "
        f"{len(found.missed)} missed ({found.share:.1%})"
    )
    for miss in found.missed:
        print(f"{miss.pod}: {causes[miss.pod] or 'NO CAUSE'}\n   {miss}")
    assert len(bound) >= 0.97 * BURST
    assert all(causes.values()), causes
    assert found.share >= 0.97
