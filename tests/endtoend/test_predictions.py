"""The predicted devices are the allocated ones: pod by pod always, in a burst nearly always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane.objects import device_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.endtoend.fleet import Fleet
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane

H100 = "device.attributes['gpu.nvidia.com'].productName.contains('H100')"


def templates(fleet: Fleet) -> None:
    """What the pods of these tests ask for."""
    fleet.template("one")
    fleet.template("two", 2)
    fleet.template("four", 4, [H100])
    fleet.template("eight", 8, [H100])
    fleet.template(
        "two-requests", devices={"requests": [device_request(1, name="a"), device_request(2, name="b")]}
    )


def mixed(fleet: Fleet, number: int) -> dict[str, Any]:
    """The pods take turns."""
    name = f"pod-{number:03d}"
    kinds: list[dict[str, Any]] = [
        {"templates": ["one"]},
        {"templates": ["two"]},
        {},
        {"gpus": 1},
        {"templates": ["one"]},
        {"templates": ["two-requests"]},
        {"templates": ["one", "one"]},
        {"templates": ["four"]} if number < 60 else {"templates": ["one"]},
        {},
        {"templates": ["eight"]} if number < 30 else {"templates": ["one"]},
    ]
    return fleet.pod(name, **kinds[number % len(kinds)])


@dataclass(frozen=True)
class Miss:
    """A wrong prediction and what the pod got."""

    pod: str
    predicted: set[tuple[str, str, str]]
    got: set[tuple[str, str, str]]


def compare(
    fleet: Fleet, decisions: dict[str, Any], names: Iterable[str]
) -> tuple[int, list[Miss], list[str]]:
    """How many predictions were right, the wrong ones, and pods without a prediction."""
    pods, claims = fleet.pods(), fleet.claims()
    right, wrong, none = 0, [], []
    for name in names:
        got = fleet.devices_of(pods[name], claims)
        if not got:
            continue
        decision = decisions.get(name)
        if decision is None or decision["outcome"] == "unpredicted":
            none.append(f"{name}: {decision and decision['unpredicted']}")
            continue
        assert decision["node"] == pods[name]["spec"]["nodeName"], decision
        predicted = {(d["claim"], d["request"], d["device"]) for d in decision["predicted"]}
        if predicted == got:
            right += 1
        else:
            wrong.append(Miss(name, predicted, got))
    return right, wrong, none


def decisions_of(replica: Replica, token: str, fleet: Fleet) -> dict[str, Any]:
    """The decision record by pod name, for pods of the fleet's namespace."""
    with replica.http(token) as http:
        answer = http.get("/api/v1/decisions", params={"limit": 1000})
        assert answer.status_code == 200, answer.text
        rows = answer.json()["decisions"] if isinstance(answer.json(), dict) else answer.json()
    return {row["podName"]: row for row in rows if row["podNamespace"] == fleet.namespace}


def test_one_at_a_time_every_prediction_is_right(fleet: Fleet, leader: Replica, deployed: Deployed) -> None:
    templates(fleet)
    token = deployed.reader_token()
    names = []
    for number in range(40):
        names += fleet.create([mixed(fleet, number)])
        fleet.wait_bound(names[-1:])
    right, wrong, none = compare(fleet, decisions_of(leader, token, fleet), names)
    assert not wrong
    assert not none
    assert right > 20


def test_in_a_burst_nearly_every_prediction_is_right(
    fleet: Fleet, leader: Replica, deployed: Deployed
) -> None:
    templates(fleet)
    token = deployed.reader_token()
    names = fleet.create(mixed(fleet, number) for number in range(200))
    pods = fleet.wait_most_bound(names)
    right, wrong, none = compare(fleet, decisions_of(leader, token, fleet), pods)
    print(f"{right} right, {len(wrong)} wrong, {len(none)} unpredicted of {len(pods)} bound")
    for miss in wrong:
        print(miss)
    for each in none:
        print("unpredicted", each)
    assert right >= 0.97 * (right + len(wrong) + len(none))
