"""Fixtures: a control plane of its own, deploy/ applied, one replica leading, kube-scheduler asking it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane import objects
from tests.controlplane.cluster import ControlPlane
from tests.deploy import manifests
from tests.endtoend.fleet import Fleet
from tests.endtoend.forwarder import Forwarder
from tests.endtoend.replica import SYSTEM_NODE, Deployed, Replica

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane; what a test puts into it, it takes out again."""
    with ControlPlane(folder=tmp_path_factory.mktemp("endtoend")) as running:
        yield running


@pytest.fixture
def kustomization() -> str:
    """Which part of deploy/ is applied."""
    return manifests.BASE


@pytest.fixture
def settings() -> dict[str, dict[str, Any]]:
    """Settings over those of deploy/base/files/berth.yaml, by section."""
    return {}


@pytest.fixture
def sizes() -> dict[str, int]:
    """Nodes of the fleet by kind."""
    return {"gpu_nodes": 20, "cpu_nodes": 3}


@pytest.fixture
def deployed(plane: ControlPlane, tmp_path: Path, kustomization: str) -> Iterator[Deployed]:
    """deploy/ applied, no replica yet."""
    made = Deployed(plane, tmp_path, kustomization)
    made.apply()
    node = objects.cpu_node(SYSTEM_NODE)
    node["spec"]["taints"] = [{"key": "system", "value": "only", "effect": "NoSchedule"}]
    if made.admin.find("v1", "Node", SYSTEM_NODE) is None:
        objects.register_node(made.admin, node)
    yield made
    made.close()


@pytest.fixture
def forwarder(deployed: Deployed) -> Iterator[Forwarder]:
    """The Service `berth`, reachable on loopback."""
    with Forwarder(deployed.admin, manifests.NAMESPACE, "berth", deployed.port_of) as running:
        yield running


@pytest.fixture
def fleet(deployed: Deployed, sizes: dict[str, int]) -> Iterator[Fleet]:
    """20 nodes x 8 GPUs, three nodes without, in a namespace of their own."""
    made = Fleet(deployed.cluster)
    try:
        made.register(**sizes)
        yield made
    finally:
        made.remove()


@pytest.fixture
def leader(
    deployed: Deployed, forwarder: Forwarder, settings: dict[str, dict[str, Any]]
) -> Iterator[Replica]:
    """One replica, leading, behind the Service, with kube-scheduler asking it."""
    replica = deployed.replica("berth-0", **settings)
    replica.start()
    replica.wait_ready()
    deployed.wait_led(forwarder, replica.name)
    try:
        deployed.cluster.start_scheduler(deployed.scheduler_config(forwarder.port))
        yield replica
    finally:
        deployed.cluster.stop_scheduler()
