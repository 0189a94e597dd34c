"""The overlays of deploy/: Berth binds; Berth beside a second kube-scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.deploy import manifests
from tests.endtoend.books import assert_ledger_equals_api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.endtoend.fleet import Fleet
    from tests.endtoend.forwarder import Forwarder
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane

PODS = 12


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: rights that an overlay gives must not help the tests of the base."""
    with ControlPlane(folder=tmp_path_factory.mktemp("overlays")) as running:
        yield running


class TestSecondScheduler:
    """overlays/second-scheduler: its own schedulerName, ServiceAccount and rights."""

    @pytest.fixture
    def kustomization(self) -> str:
        """The overlay."""
        return manifests.SECOND_SCHEDULER

    @pytest.fixture
    def leader(self, deployed: Deployed, forwarder: Forwarder) -> Iterator[Replica]:
        """One replica, leading; only the second kube-scheduler asks it."""
        replica = deployed.replica("berth-0")
        replica.start()
        replica.wait_ready()
        deployed.wait_led(forwarder, replica.name)
        cluster = deployed.cluster
        token = cluster.service_account_token(manifests.NAMESPACE, "berth-scheduler")
        config = deployed.scheduler_config(forwarder.port)
        try:
            cluster.start_scheduler(config, name="berth-scheduler", token=token)
            cluster.start_scheduler()
            yield replica
        finally:
            cluster.stop_scheduler("berth-scheduler")
            cluster.stop_scheduler()

    def test_only_pods_of_the_second_scheduler_are_placed_with_berth(
        self, fleet: Fleet, leader: Replica, deployed: Deployed
    ) -> None:
        fleet.template("one")
        by = {"with": "berth-scheduler", "without": "default-scheduler"}
        made = [
            fleet.pod(f"{word}-{number}", templates=["one"], scheduler=name)
            for word, name in by.items()
            for number in range(PODS)
        ]
        fleet.wait_bound(fleet.create(made))
        asked = leader.decisions(deployed.reader_token(), fleet.namespace)
        assert asked.keys() == {f"with-{number}" for number in range(PODS)}
        assert {each["outcome"] for each in asked.values()} <= {"right", "wrong"}


class TestBind:
    """overlays/bind: Berth posts the Bindings."""

    @pytest.fixture
    def kustomization(self) -> str:
        """The overlay."""
        return manifests.BIND

    def test_berth_binds_every_pod(self, fleet: Fleet, leader: Replica, deployed: Deployed) -> None:
        assert deployed.extender()["bindVerb"] == "bind"
        fleet.template("one")
        kinds: list[list[str]] = [["one"], []]
        names = fleet.create(fleet.pod(f"p-{n}", templates=kinds[n % 2]) for n in range(PODS))
        fleet.wait_bound(names)
        bound = {
            name: value
            for name, value in leader.metrics().items()
            if name.startswith("berth_decisions_total") and 'verb="bind"' in name
        }
        assert bound == {'berth_decisions_total{outcome="passed",reason="none",verb="bind"}': PODS}
        assert_ledger_equals_api(leader, deployed.reader_token(), fleet.admin)
