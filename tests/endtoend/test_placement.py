"""Placement by a stock kube-scheduler that asks Berth, under the deployed rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.objects import DRIVER, EXTENDED_RESOURCE
from tests.endtoend.requests import templates

if TYPE_CHECKING:
    from tests.endtoend.fleet import Fleet, Object
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane


@pytest.fixture
def sizes() -> dict[str, int]:
    """A node with a device plugin beside those with a DRA driver."""
    return {"gpu_nodes": 20, "cpu_nodes": 3, "plugin_nodes": 1}


def _on(node: str) -> Object:
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def test_claims_in_nvidia_style_are_bound(fleet: Fleet, leader: Replica, deployed: Deployed) -> None:
    templates(fleet)
    fleet.claim("shared")
    made = [
        fleet.pod("one", templates=["one"]),
        fleet.pod("eight-of-a-product", templates=["eight"]),
        fleet.pod("sharing-0", claims=["shared"]),
        fleet.pod("sharing-1", claims=["shared"]),
        fleet.pod("extended", gpus=2, spec=_on("gpu-05")),
        fleet.pod("plugin", gpus=3, spec=_on("plugin-00")),
        fleet.pod("alternative", templates=["first"]),
        fleet.pod("pair", templates=["pair"]),
    ]
    pods = fleet.wait_bound(fleet.create(made))
    claims = fleet.claims()
    node = {name: pod["spec"]["nodeName"] for name, pod in pods.items()}
    took = {name: fleet.devices_of(pod, claims) for name, pod in pods.items()}

    assert {name: len(devices) for name, devices in took.items()} == {
        "one": 1,
        "eight-of-a-product": 8,
        "sharing-0": 1,
        "sharing-1": 1,
        "extended": 2,
        "plugin": 0,
        "alternative": 1,
        "pair": 2,
    }
    for name, devices in took.items():
        assert all(device.startswith(f"{DRIVER}/{node[name]}/gpu-") for *_, device in devices), name
    assert node["eight-of-a-product"] not in {"gpu-18", "gpu-19"}  # those have another product
    assert took["sharing-0"] == took["sharing-1"]
    assert {request for _, request, _ in took["alternative"]} == {"gpu/any"}
    assert len({int(device.rpartition("-")[2]) // 2 for *_, device in took["pair"]}) == 1
    with leader.http(deployed.reader_token()) as http:
        view = http.get("/api/v1/nodes/plugin-00").raise_for_status().json()
    assert view["resources"] == [{"name": EXTENDED_RESOURCE, "allocatable": 8, "requested": 3}]


@pytest.mark.usefixtures("leader")
def test_a_pod_without_gpus_goes_to_a_gpu_node_only_when_no_other_fits(fleet: Fleet) -> None:
    fleet.template("one")
    kinds: list[list[str]] = [[], ["one"], []]
    made = [fleet.pod(f"pod-{number:02d}", templates=kinds[number % 3]) for number in range(45)]
    pods = fleet.wait_bound(fleet.create(made))
    without = {pod["spec"]["nodeName"] for pod in pods.values() if not pod["spec"].get("resourceClaims")}
    assert len([pod for pod in pods.values() if not pod["spec"].get("resourceClaims")]) == 30
    assert without <= {"cpu-00", "cpu-01", "cpu-02"}

    too_large_for_others = fleet.pod("large", cpu="100")
    pods = fleet.wait_bound(fleet.create([too_large_for_others]))
    assert pods["large"]["spec"]["nodeName"].startswith(("gpu-", "plugin-"))
