"""What the leader does beside answering, and that it does nothing once the Lease is lost by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest_asyncio

from extender.api.meta import Condition
from extender.inventory.health import Transition
from extender.kube.client import ApiClient
from extender.model.reason import Reason
from extender.settings import load
from extender.sim.generated import POD_KINDS, asking
from extender.verbs.memory_veto import MEMORY_NEED
from extender.wiring.core import Core, build_core
from extender.wiring.leading import NAMED_DEVICES, Leading
from tests.kube.recording import FakeTime, until
from tests.kube.scripted_api import ScriptedApi, answer
from tests.wiring.process import ROOT
from tests.wiring.served import fleet_with

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


class Scene:
    """A leader's works over a fleet, and a Lease that a test takes away."""

    def __init__(self, client: ApiClient) -> None:
        policy = str(ROOT / "tests" / "wiring" / "data" / "policy.yaml")
        self.core: Core = build_core(load(None, {"BERTH_POLICY__FILE": policy}), "1")
        pod = asking(POD_KINDS[0], 0)
        said = Condition(
            "PodScheduled", "False", "Unschedulable", "0/2 nodes are available: 2 DeviceLost: x."
        )
        self.pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[said]))
        for kind, objects in fleet_with(self.pod).items():
            self.core.ledger.replaced(kind, objects, [])
        self.holds = True
        self.leading = Leading(
            self.core,
            client,
            FakeTime().pace(),
            identity="own",
            still_ours=lambda: self.holds,
            enforce=lambda: True,
            served=dict,
        )
        self.node = next(iter(self.core.ledger.snapshot().topology.slot_of))

    def transitioned(self, *uuids: str, entered: bool = True) -> None:
        for listener in self.core.telemetry.listeners:
            listener(
                [Transition(self.node, uuid, Reason.DEVICE_LOST, "gone", entered, 0.0) for uuid in uuids]
            )

    def value(self, name: str, **labels: str) -> float | None:
        return self.core.registry.get_sample_value(name, labels)

    @asynccontextmanager
    async def working(self, *names: str) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self.leading.works[name]()) for name in names]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest_asyncio.fixture
async def scene(api: ScriptedApi) -> AsyncIterator[Scene]:
    async with ApiClient(api.configuration()) as client:
        yield Scene(client)


async def test_devices_of_a_node_that_share_a_reason_are_told_in_one_event(
    api: ScriptedApi, scene: Scene
) -> None:
    api.on("POST", EVENTS, answer(201, {}))
    uuids = [f"GPU-{number}" for number in range(NAMED_DEVICES + 2)]
    scene.transitioned(*uuids)
    scene.transitioned("GPU-0", entered=False)
    async with scene.working("events"):
        await until(lambda: scene.value("berth_events_total", outcome="written") == 2)
    sick, well = [request.json for request in api.seen("POST", EVENTS)]
    assert sick["note"] == f"{', '.join(uuids[:NAMED_DEVICES])} and 2 more: gone"
    assert (sick["type"], sick["reason"], sick["regarding"]["name"]) == ("Warning", "DeviceLost", scene.node)
    assert (well["type"], well["note"]) == ("Normal", "GPU-0: no longer so")


async def test_a_follower_tells_nothing_of_the_health_it_hears_of(api: ScriptedApi, scene: Scene) -> None:
    api.on("POST", EVENTS, answer(201, {}))
    scene.holds = False
    scene.transitioned("GPU-0")
    scene.holds = True
    scene.transitioned("GPU-1")
    async with scene.working("events"):
        await until(lambda: scene.value("berth_events_total", outcome="written") == 1)
    assert [request.json["note"] for request in api.seen("POST", EVENTS)] == ["GPU-1: gone"]


async def test_a_pod_is_nudged_only_while_the_lease_is_ours_by_the_clock(
    api: ScriptedApi, scene: Scene
) -> None:
    path = f"/api/v1/namespaces/{scene.pod.metadata.namespace}/pods/{scene.pod.metadata.name}"
    api.on("PATCH", path, answer(200, {}))
    scene.holds = False
    async with scene.working("nudging", "nudges"):
        await until(lambda: scene.value("berth_waiting_pods") == 1)
        for _ in range(50):
            await asyncio.sleep(0)
        assert api.requests == []
        scene.holds = True
        await until(lambda: scene.value("berth_nudges_total", outcome="sent") == 1)
    assert len(api.seen("PATCH", path)) == 1


async def test_a_pod_is_not_told_of_an_annotation_once_the_lease_is_lost(
    api: ScriptedApi, scene: Scene
) -> None:
    metadata = msgspec.structs.replace(scene.pod.metadata, annotations={MEMORY_NEED: "plenty"})
    scene.core.ledger.upserted("Pod", msgspec.structs.replace(scene.pod, metadata=metadata))
    scene.holds = False
    async with scene.working("annotations", "events"):
        for _ in range(50):
            await asyncio.sleep(0)
    assert api.requests == []
    assert scene.value("berth_events_total", outcome="dropped") == 0
