from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from extender.kube.client import ApiClient
from extender.kube.discovery import Discovery, DiscoveryTimes
from extender.kube.kinds import DEVICE_TAINT_RULE, OPTIONAL
from extender.kube.pace import Pace
from extender.model.errors import KubeError
from tests.kube.recording import FakeTime, until
from tests.kube.scripted_api import Feed, ScriptedApi, answer, bookmark, line, refuse, watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DRA = "/apis/resource.k8s.io"
SCHEDULING = "/apis/scheduling.k8s.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}


def serve(api: ScriptedApi, version_path: str, *resources: str) -> None:
    api.on("GET", version_path, answer(200, {"resources": [{"name": name} for name in resources]}))
    for name in resources:
        api.on("GET", f"{version_path}/{name}", answer(200, EMPTY))


def discovery(client: ApiClient, pace: Pace | None = None, times: DiscoveryTimes | None = None) -> Discovery:
    return Discovery(client, OPTIONAL, pace=pace or FakeTime().pace(), times=times)


async def test_the_preferred_served_version_of_each_kind_is_found(
    api: ScriptedApi, client: ApiClient
) -> None:
    serve(api, f"{DRA}/v1", "resourceclaims", "resourceslices")
    serve(api, f"{DRA}/v1beta2", "devicetaintrules", "devicetaintrules/status")
    serve(api, f"{DRA}/v1alpha3", "devicetaintrules")
    serve(api, f"{SCHEDULING}/v1beta1", "podgroups", "workloads")
    assert await discovery(client).served() == {
        "DeviceTaintRule": "v1beta2",
        "PodGroup": "v1beta1",
        "Workload": "v1beta1",
    }


async def test_a_kind_that_we_may_not_list_counts_as_not_served(api: ScriptedApi, client: ApiClient) -> None:
    serve(api, f"{DRA}/v1", "devicetaintrules")
    api.on("GET", DEVICE_TAINT_RULE.path("v1"), refuse(403, "Forbidden"))
    assert await discovery(client).served() == {}


async def test_an_outage_says_nothing_about_what_is_served(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", f"{DRA}/v1", refuse(500))
    with pytest.raises(KubeError):
        await discovery(client).served()


@asynccontextmanager
async def listening(made: Discovery) -> AsyncIterator[list[Mapping[str, str]]]:
    heard: list[Mapping[str, str]] = []
    task = asyncio.create_task(made.run(heard.append))
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_changed_definition_asks_again(api: ScriptedApi, client: ApiClient) -> None:
    feed = Feed()
    api.on("GET", CRDS, answer(200, EMPTY), feed.step)
    made = discovery(client, Pace(), DiscoveryTimes(interval=600, settle=0))
    async with listening(made) as heard:
        feed.send(bookmark("1", ends_list=True))
        await until(lambda: heard == [{}])
        serve(api, f"{DRA}/v1", "devicetaintrules")
        feed.send(line("ADDED", {"metadata": {"name": "x", "resourceVersion": "2"}, "spec": {"huge": []}}))
        await until(lambda: len(heard) == 2)
    assert heard[1] == {"DeviceTaintRule": "v1"}


async def test_where_definitions_are_closed_to_us_the_interval_asks_again(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("GET", CRDS, refuse(403, "Forbidden"))
    time = FakeTime()
    async with listening(discovery(client, time.pace(), DiscoveryTimes(interval=77, settle=0))) as heard:
        await until(lambda: heard == [{}])
        serve(api, f"{DRA}/v1", "devicetaintrules")
        await until(lambda: len(heard) == 2)
    assert set(time.sleeps) == {77}


async def test_what_was_heard_last_stands_through_an_outage(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", CRDS, refuse(403, "Forbidden"))
    serve(api, f"{DRA}/v1", "devicetaintrules")
    async with listening(discovery(client)) as heard:
        await until(lambda: len(heard) == 1)
        api.on("GET", f"{DRA}/v1", refuse(503))
        asked = len(api.requests)
        await until(lambda: len(api.requests) > asked + 5)
        assert heard == [{"DeviceTaintRule": "v1"}]


async def test_a_watch_of_definitions_that_only_lists_at_the_start_asks_once(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("GET", CRDS, answer(200, EMPTY), watch(bookmark("1", ends_list=True)))
    made = discovery(client, Pace(), DiscoveryTimes(interval=600, settle=0))
    async with listening(made) as heard:
        await until(lambda: len(api.seen("GET", CRDS)) == 2 and bool(heard))
        await asyncio.sleep(0.05)  # time in which a second question would come
    assert len(api.seen("GET", f"{DRA}/v1")) == 1
