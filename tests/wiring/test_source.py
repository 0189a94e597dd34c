"""One replica beside others: when it may answer, what a new term finds in flight, and how a fault ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.kube.client import ApiClient
from extender.kube.leader_label import LEADER_LABEL
from extender.model.errors import KubeError, SettingsError
from extender.settings import load
from extender.sim.generated import POD_KINDS, asking
from extender.verbs.memory_veto import MEMORY_NEED
from extender.wiring.core import Core, build_core
from extender.wiring.source import Cluster, api_client, connect
from tests.kube.scripted_api import ScriptedApi, Step, Stored, answer, never, refuse
from tests.wiring.process import ROOT
from tests.wiring.served import OWN, fleet_with, kubeconfig, serve

LEASES = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases"
ENVIRON = {
    "BERTH_POLICY__FILE": str(ROOT / "tests" / "wiring" / "data" / "policy.yaml"),
    "BERTH_LEADER_ELECTION__LEASE_DURATION_SECONDS": "1",
    "BERTH_LEADER_ELECTION__RENEW_DEADLINE_SECONDS": "0.8",
    "BERTH_LEADER_ELECTION__RETRY_PERIOD_SECONDS": "0.1",
}


@pytest.fixture
def lease(api: ScriptedApi) -> Stored:
    return Stored(api, LEASES, "berth")


@asynccontextmanager
async def running(api: ScriptedApi, **environ: str) -> AsyncIterator[tuple[Core, Cluster]]:
    core = build_core(load(None, {**ENVIRON, **environ}), "1")
    async with ApiClient(api.configuration()) as client:
        cluster = connect(core, client, {"POD_NAME": "own", "POD_NAMESPACE": "berth-system"})
        task = asyncio.create_task(cluster.run())
        try:
            yield core, cluster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what is waited for is read off plain objects
            await asyncio.sleep(0.01)


def leads(core: Core) -> float | None:
    return core.registry.get_sample_value("berth_leader")


async def test_it_answers_once_it_is_synced_and_leads_in_this_term(api: ScriptedApi, lease: Stored) -> None:
    serve(api, fleet_with())
    async with running(api) as (core, cluster):
        assert "not synced yet" in cluster.obstacle()
        assert leads(core) == 0
        await until(lambda: not cluster.obstacle())
        assert leads(core) == 1
        assert core.ledger.counts()["Node"] == 2
        await until(lambda: bool(api.seen("PATCH", f"{OWN}/own")))
        # Each kind was listed at start and again in this term.
        assert len([r for r in api.seen("GET", "/api/v1/nodes") if "watch" not in r.query]) >= 2
    assert lease.object is not None
    assert lease.object["spec"]["holderIdentity"] == ""


def label_and_holder(api: ScriptedApi) -> list[tuple[str, Any]]:
    """What was written of our pod's leader label and of the Lease's holder, in order, repeats left out."""
    written: list[tuple[str, Any]] = []
    for request in api.requests:
        if request.method == "PATCH" and request.path == f"{OWN}/own":
            said = ("label", request.json["metadata"]["labels"][LEADER_LABEL])
        elif request.path.startswith(LEASES) and request.method in {"POST", "PUT"}:
            said = ("holder", bool(request.json["spec"]["holderIdentity"]))
        else:
            continue
        if said not in written[-1:]:
            written.append(said)
    return written


@pytest.mark.parametrize("step", [answer(200, {}), refuse(500)])
async def test_a_leader_that_stops_takes_its_label_off_before_it_gives_the_lease_back(
    api: ScriptedApi, lease: Stored, step: Step
) -> None:
    serve(api, fleet_with())
    api.on("PATCH", f"{OWN}/own", answer(200, {}), step)
    async with running(api):
        await until(lambda: bool(api.seen("PATCH", f"{OWN}/own")))
    assert [said for said in label_and_holder(api) if said != ("holder", True)] == [
        ("label", "true"),
        ("label", None),
        ("holder", False),
    ]
    assert lease.object is not None
    assert lease.object["spec"]["holderIdentity"] == ""


async def test_a_replica_that_does_not_lead_leaves_the_label_alone_when_it_stops(
    api: ScriptedApi, lease: Stored
) -> None:
    serve(api, fleet_with())
    async with running(api) as (core, _):
        await until(lambda: bool(api.seen("PATCH", f"{OWN}/own")))
        assert lease.object is not None
        lease.set({**lease.object, "spec": {**lease.object["spec"], "holderIdentity": "other"}})
        await until(lambda: leads(core) == 0)
    assert [r.json["metadata"]["labels"] for r in api.seen("PATCH", f"{OWN}/own")] == [{LEADER_LABEL: "true"}]


async def test_the_owner_of_a_pod_hears_of_an_annotation_that_cant_be_used(
    api: ScriptedApi, lease: Stored
) -> None:
    pod = asking(POD_KINDS[0], 0)
    metadata = msgspec.structs.replace(pod.metadata, annotations={MEMORY_NEED: "plenty"})
    serve(api, fleet_with(msgspec.structs.replace(pod, metadata=metadata)))
    events = f"/apis/events.k8s.io/v1/namespaces/{metadata.namespace}/events"
    api.on("POST", events, answer(201, {}))
    async with running(api) as (core, _):
        written = ("berth_events_total", {"outcome": "written"})
        await until(lambda: core.registry.get_sample_value(*written) == 1)
    [event] = [request.json for request in api.seen("POST", events)]
    assert (event["reason"], event["regarding"]["uid"]) == ("AnnotationIgnored", metadata.uid)
    assert "berth.scheduler/memory-need: 'plenty' is ignored" in event["note"]
    assert lease.object is not None


async def test_while_another_holds_the_lease_it_refuses(api: ScriptedApi, lease: Stored) -> None:
    lease.set(
        {
            "metadata": {"name": "berth", "namespace": "berth-system"},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600, "leaseTransitions": 4},
        }
    )
    serve(api, fleet_with())
    async with running(api) as (core, cluster):
        await until(lambda: cluster.obstacle() == "another replica of berth leads")
        assert (leads(core), cluster.waiting()) == (0, [])
        assert api.seen("PATCH", f"{OWN}/own") == []


async def test_a_term_begins_with_every_unbound_pod_of_ours_in_flight_everywhere(
    api: ScriptedApi, lease: Stored
) -> None:
    waiting, bound = asking(POD_KINDS[0], 0), asking(POD_KINDS[0], 1)
    bound = msgspec.structs.replace(bound, spec=msgspec.structs.replace(bound.spec, node_name="n"))
    serve(api, fleet_with(waiting, bound, asking(POD_KINDS[-1], 0)))
    async with running(api) as (core, cluster):
        await until(lambda: not cluster.obstacle())
        assert [(offer.pod.metadata.name, offer.everywhere) for offer in core.ledger.in_flight.offers()] == [
            ("claim-1-0", True)
        ]
        # An offer of ours of this term names nodes; another replica leads in between and offers others.
        core.ledger.in_flight.offered(waiting, ("n1",), core.clock())
        assert lease.object is not None
        spec = lease.object["spec"]
        lease.set({**lease.object, "spec": {**spec, "holderIdentity": "other", "leaseDurationSeconds": 1}})
        await until(lambda: leads(core) == 0)
        await until(lambda: not cluster.obstacle())
        [offer] = core.ledger.in_flight.offers()
        assert offer.everywhere


async def test_a_fault_while_taking_over_ends_the_replica_and_gives_the_lease_back(
    api: ScriptedApi, lease: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(api, fleet_with())
    core = build_core(load(None, ENVIRON), "1")

    def fails() -> None:
        raise ValueError("no")

    async with ApiClient(api.configuration()) as client:
        cluster = connect(core, client, {"POD_NAME": "own", "POD_NAMESPACE": "berth-system"})
        monkeypatch.setattr(cluster, "_find_in_flight", fails)
        with pytest.raises(ExceptionGroup) as caught:
            await asyncio.wait_for(cluster.run(), 20)
    assert [str(fault) for fault in caught.value.exceptions] == ["no"]
    assert lease.object is not None
    assert lease.object["spec"]["holderIdentity"] == ""


async def test_drift_is_checked_as_often_as_the_settings_say(api: ScriptedApi, lease: Stored) -> None:
    assert lease.object is None
    serve(api, fleet_with())
    stamp = "berth_inventory_drift_check_timestamp_seconds"
    async with running(api, BERTH_KUBE__DRIFT_SECONDS="0.05") as (core, _):
        await until(lambda: bool(core.registry.get_sample_value(stamp)))
        assert (
            core.registry.get_sample_value(
                "berth_inventory_drift_objects", {"kind": "Node", "difference": "missing"}
            )
            == 0
        )
    async with running(api, BERTH_KUBE__DRIFT_SECONDS="0") as (core, cluster):
        await until(lambda: not cluster.obstacle())
        assert core.registry.get_sample_value(stamp) == 0


async def test_a_request_ends_after_the_time_of_the_settings(api: ScriptedApi, tmp_path: Path) -> None:
    api.on("GET", "/api/v1/nodes", never)
    environ = {
        "BERTH_KUBE__KUBECONFIG": str(kubeconfig(api, tmp_path)),
        "BERTH_KUBE__REQUEST_TIMEOUT_SECONDS": "0.05",
    }
    async with asyncio.timeout(20), await api_client(load(None, environ)) as client:
        with pytest.raises(KubeError, match="TimeoutError"):
            await client.get("/api/v1/nodes")


async def test_lease_times_that_can_not_be_kept_are_named(api: ScriptedApi) -> None:
    core = build_core(load(None, {**ENVIRON, "BERTH_LEADER_ELECTION__LEASE_DURATION_SECONDS": "1.5"}), "1")
    async with ApiClient(api.configuration()) as client:
        with pytest.raises(SettingsError, match="leaderElection: leaseDurationSeconds is a whole number"):
            connect(core, client, {})
