"""Fixtures: a control plane of its own, deploy/ applied, one replica leading, kube-scheduler asking it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane import objects
from tests.controlplane.build import build_controlplane
from tests.controlplane.cluster import ControlPlane
from tests.endtoend.fleet import Fleet
from tests.endtoend.forwarder import Forwarder
from tests.endtoend.replica import SYSTEM_NODE, Deployed, Replica

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, so that no test's time limit has to cover a build of minutes."""
    wanted = any(item.get_closest_marker("controlplane") for item in session.items)
    if wanted and not session.config.option.collectonly:
        build_controlplane()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane; each test module has its own."""
    with ControlPlane(folder=tmp_path_factory.mktemp("endtoend")) as running:
        yield running


@pytest.fixture
def deployed(plane: ControlPlane, tmp_path: object) -> Iterator[Deployed]:
    """deploy/base applied, no replica yet."""
    made = Deployed(plane, tmp_path)  # type: ignore[arg-type]  # pathlib.Path
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

    class _Ports(dict[str, int]):
        def get(self, key: str, default: object = None) -> object:  # type: ignore[override]  # looked up late
            return deployed.ports().get(key, default)

    with Forwarder(deployed.admin, "berth-system", "berth", _Ports()) as running:
        yield running


@pytest.fixture
def fleet(deployed: Deployed) -> Iterator[Fleet]:
    """20 nodes x 8 GPUs, three nodes without, in a namespace of their own."""
    made = Fleet(deployed.cluster)
    made.register(gpu_nodes=20, cpu_nodes=3)
    yield made
    made.remove()


@pytest.fixture
def leader(deployed: Deployed, forwarder: Forwarder) -> Iterator[Replica]:
    """One replica, leading, behind the Service, with kube-scheduler asking it."""
    replica = deployed.replica("berth-0")
    replica.start()
    replica.wait_ready()
    deployed.wait_led(forwarder, "berth-0")
    deployed.cluster.start_scheduler(deployed.scheduler_config(forwarder.port), name="kube-scheduler")
    yield replica
    deployed.cluster.stop_scheduler("kube-scheduler")
