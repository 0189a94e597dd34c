from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.kube.client import ApiClient
from extender.kube.discovery import DiscoveryTimes
from extender.kube.kinds import DEVICE_TAINT_RULE, NODE, POD
from extender.kube.letterbox import Letterbox
from extender.kube.pace import Pace
from extender.kube.reflector import ReflectorOptions
from tests.kube.recording import RecordingSink, until
from tests.kube.scripted_api import Reply, Request, ScriptedApi, Step, answer, line, never, refuse

DRA = "/apis/resource.k8s.io/v1"
RULES = f"{DRA}/devicetaintrules"


def collection(*names: str) -> Step:
    """Lists these, and then a watch without events."""

    async def step(request: Request, reply: Reply) -> None:
        items = [{"metadata": {"name": name, "resourceVersion": "5"}} for name in names]
        if "watch" in request.query:
            await reply.start()
            await asyncio.Event().wait()
        await reply.send(200, {"metadata": {"resourceVersion": "5"}, "items": items})

    return step


@asynccontextmanager
async def running(client: ApiClient, sink: RecordingSink, interval: float = 600) -> AsyncIterator[Letterbox]:
    letterbox = Letterbox(
        client,
        sink,
        pace=Pace(),
        options=ReflectorOptions(streaming=False, backoff_base=0.01, backoff_ceiling=0.02),
        times=DiscoveryTimes(interval=interval, settle=0),
        required=(NODE, POD),
        optional=(DEVICE_TAINT_RULE,),
    )
    task = asyncio.create_task(letterbox.run())
    try:
        yield letterbox
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def serve_rules(api: ScriptedApi, *names: str) -> None:
    api.on("GET", DRA, answer(200, {"resources": [{"name": "devicetaintrules"}]}))
    api.on("GET", RULES, collection(*names))


async def test_it_is_synced_when_every_kind_is(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", "/api/v1/nodes", collection("n1"))
    api.on("GET", "/api/v1/pods", never)
    sink = RecordingSink()
    async with running(client, sink) as letterbox:
        await sink.until(lambda: sink.names("Node") == ["n1"])
        assert not letterbox.synced
        assert letterbox.synced_kinds() == {"Node": True, "Pod": False}
    api.on("GET", "/api/v1/pods", collection("p1"))
    async with running(client, sink) as letterbox:
        await asyncio.wait_for(letterbox.wait_synced(), 5)
        assert letterbox.synced
        assert set(letterbox.stats) == {"Node", "Pod"}
    assert sink.names("Pod") == ["p1"]


async def test_it_is_not_synced_before_it_knows_which_optional_kinds_there_are(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("GET", "/api/v1/nodes", collection("n1"))
    api.on("GET", "/api/v1/pods", collection())
    api.on("GET", DRA, never)
    sink = RecordingSink()
    async with running(client, sink) as letterbox:
        await until(lambda: letterbox.synced_kinds() == {"Node": True, "Pod": True})
        assert not letterbox.synced


async def test_optional_kinds_come_and_go_with_what_is_served(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", "/api/v1/nodes", collection("n1"))
    api.on("GET", "/api/v1/pods", collection())
    serve_rules(api, "r1")
    sink = RecordingSink()
    async with running(client, sink, interval=0.02) as letterbox:
        await asyncio.wait_for(letterbox.wait_synced(), 5)
        assert letterbox.served == {"DeviceTaintRule": "v1"}
        assert sink.names("DeviceTaintRule") == ["r1"]
        api.on("GET", DRA, refuse(404, "NotFound"))
        await until(lambda: letterbox.served == {})
        await sink.until(lambda: sink.names("DeviceTaintRule") == [])
        assert letterbox.synced
        serve_rules(api, "r2")
        await sink.until(lambda: sink.names("DeviceTaintRule") == ["r2"])


async def test_resync_returns_when_every_kind_was_listed_anew(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", "/api/v1/nodes", collection("n1"))
    api.on("GET", "/api/v1/pods", collection("p1"))
    serve_rules(api, "r1")
    sink = RecordingSink()
    async with running(client, sink) as letterbox:
        await asyncio.wait_for(letterbox.wait_synced(), 5)
        api.on("GET", "/api/v1/nodes", collection("n2"))
        api.on("GET", "/api/v1/pods", collection("p2"))
        serve_rules(api, "r2")
        await asyncio.wait_for(letterbox.resync(), 5)
        assert [sink.names(k) for k in ("Node", "Pod", "DeviceTaintRule")] == [["n2"], ["p2"], ["r2"]]


async def test_a_fault_of_the_sink_ends_it_loudly(
    api: ScriptedApi, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = RecordingSink()

    def broken(kind: str, obj: Any) -> None:
        raise KeyError((kind, obj))

    async def one_event(request: Request, reply: Reply) -> None:
        if "watch" in request.query:
            await reply.start()
            await reply.chunk(line("ADDED", {"metadata": {"name": "p", "resourceVersion": "6"}}))
            await asyncio.Event().wait()
        await collection()(request, reply)

    monkeypatch.setattr(sink, "upserted", broken)
    api.on("GET", "/api/v1/nodes", collection())
    api.on("GET", "/api/v1/pods", one_event)
    letterbox = Letterbox(
        client,
        sink,
        pace=Pace(),
        options=ReflectorOptions(streaming=False),
        required=(NODE, POD),
        optional=(),
    )
    with pytest.raises(KeyError):
        await asyncio.wait_for(letterbox.run(), 5)
