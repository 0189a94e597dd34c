from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.api.core import Pod
from extender.kube.client import ApiClient
from extender.kube.kinds import POD, RESOURCE_SLICE, Kind
from extender.kube.reflector import Reflector, ReflectorOptions, _Found
from extender.model.errors import WireError
from tests.kube.recording import FakeTime, RecordingSink, until
from tests.kube.scripted_api import (
    Feed,
    ScriptedApi,
    answer,
    bookmark,
    hang_up,
    line,
    refuse,
    watch,
)

PODS = "/api/v1/pods"
PAGED = ReflectorOptions(streaming=False)


def pod(name: str, version: str = "1", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": version},
        "spec": spec,
    }


def page(version: str, *items: Any, more: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version, "continue": more}, "items": list(items)}


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@asynccontextmanager
async def running(
    client: ApiClient,
    sink: RecordingSink,
    time: FakeTime,
    options: ReflectorOptions | None = None,
    kind: Kind[Any] = POD,
) -> AsyncIterator[Reflector[Any]]:
    reflector = Reflector(client, kind, "v1", sink, pace=time.pace(), options=options)
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_pages_are_one_list_to_the_sink(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    feed = Feed()
    api.on(
        "GET",
        PODS,
        answer(200, page("7", pod("a"), pod("b"), more="next")),
        answer(200, page("7", pod("c"))),
        feed.step,
    )
    async with running(client, sink, time, PAGED) as reflector:
        assert not reflector.synced.is_set()
        await asyncio.wait_for(reflector.synced.wait(), 5)
        await until(lambda: len(api.requests) == 3)
    assert sink.log == [("replaced", "a,b,c")]
    assert api.requests[0].query == {"limit": "250", "fieldSelector": POD.field_selector}
    watching = api.requests[2].query
    assert watching["resourceVersion"] == "7"
    assert watching["allowWatchBookmarks"] == "true"
    assert 300 <= int(watching["timeoutSeconds"]) <= 600


async def test_events_reach_the_sink_in_order(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    feed = Feed()
    api.on("GET", PODS, answer(200, page("7", pod("a"))), feed.step)
    async with running(client, sink, time, PAGED) as reflector:
        feed.send(line("ADDED", pod("b", "8")) + line("MODIFIED", pod("b", "9", nodeName="n1")))
        feed.send(line("DELETED", pod("a", "10")))
        await sink.until(lambda: len(sink.log) == 4)
        assert reflector.stats.events == 3
    assert sink.log == [("replaced", "a"), ("upserted", "b"), ("upserted", "b"), ("deleted", "a")]
    assert sink.known["Pod"]["b"].spec.node_name == "n1"


async def test_a_watch_goes_on_from_the_last_bookmark(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on(
        "GET",
        PODS,
        answer(200, page("7")),
        watch(line("ADDED", pod("a", "8")), bookmark("30"), then="break"),
        watch(),
    )
    async with running(client, sink, time, PAGED):
        await until(lambda: len(api.requests) == 3)
    assert api.requests[2].query["resourceVersion"] == "30"
    assert sink.log == [("replaced", ""), ("upserted", "a")]


async def test_a_streamed_list_replaces_once_and_goes_on_as_a_watch(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    feed = Feed()
    api.on("GET", PODS, feed.step)
    async with running(client, sink, time) as reflector:
        feed.send(line("ADDED", pod("a")) + line("ADDED", pod("b")) + line("DELETED", pod("b")))
        await until(lambda: len(api.requests) == 1)
        assert sink.log == []
        feed.send(bookmark("9", ends_list=True))
        await asyncio.wait_for(reflector.synced.wait(), 5)
        feed.send(line("ADDED", pod("c", "10")))
        await sink.until(lambda: len(sink.log) == 2)
    assert sink.log == [("replaced", "a"), ("upserted", "c")]
    query = api.requests[0].query
    assert query["sendInitialEvents"] == "true"
    assert query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in query


async def test_a_bookmark_inside_a_streamed_list_does_not_end_it(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    feed = Feed()
    api.on("GET", PODS, feed.step)
    async with running(client, sink, time) as reflector:
        feed.send(line("ADDED", pod("a")) + bookmark("5") + line("ADDED", pod("b")))
        feed.send(bookmark("9", ends_list=True))
        await asyncio.wait_for(reflector.synced.wait(), 5)
    assert sink.log == [("replaced", "a,b")]


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_without_streamed_lists_is_asked_for_pages(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime, status: int
) -> None:
    api.on("GET", PODS, refuse(status, "Invalid"), answer(200, page("7", pod("a"))), watch())
    async with running(client, sink, time) as reflector:
        await asyncio.wait_for(reflector.synced.wait(), 5)
    assert time.sleeps == []
    assert sink.log == [("replaced", "a")]


async def test_a_streamed_list_that_never_ends_is_given_up_for_pages(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on("GET", PODS, watch(line("ADDED", pod("a"))), answer(200, page("7", pod("b"))), watch())
    async with running(client, sink, time, ReflectorOptions(inactivity=0.05)):
        await sink.until(lambda: bool(sink.log))
    assert sink.log[0] == ("replaced", "b")


@pytest.mark.parametrize("how", ["status", "event"])
async def test_410_lists_anew_and_drops_what_vanished(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime, how: str
) -> None:
    expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    api.on(
        "GET",
        PODS,
        answer(200, page("7", pod("a"), pod("b"))),
        refuse(410, "Expired") if how == "status" else watch(line("ERROR", expired)),
        answer(200, page("90", pod("b"))),
        watch(),
    )
    async with running(client, sink, time, PAGED) as reflector:
        await sink.until(lambda: len(sink.log) == 2)
        assert reflector.stats.relists_gone == 1
    assert sink.log == [("replaced", "a,b"), ("replaced", "b")]
    assert sink.names("Pod") == ["b"]


async def test_an_expired_continue_token_starts_the_list_anew(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on(
        "GET",
        PODS,
        answer(200, page("7", pod("a"), more="next")),
        refuse(410, "Expired"),
        answer(200, page("9", pod("b"))),
        watch(),
    )
    async with running(client, sink, time, PAGED):
        await sink.until(lambda: bool(sink.log))
    assert sink.log == [("replaced", "b")]
    assert "continue" not in api.requests[2].query


async def test_a_silent_stream_is_left_and_watched_again_from_the_same_version(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on("GET", PODS, answer(200, page("7")), watch(), watch(line("ADDED", pod("a", "8"))))
    async with running(client, sink, time, ReflectorOptions(streaming=False, inactivity=0.05)):
        await sink.until(lambda: len(sink.log) == 2)
    assert [r.query.get("resourceVersion") for r in api.requests[:3]] == [None, "7", "7"]


async def test_a_busy_server_is_left_alone_for_as_long_as_it_says(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on(
        "GET",
        PODS,
        refuse(429, "TooManyRequests", headers={"Retry-After": "30"}),
        answer(200, page("7")),
        refuse(429, "TooManyRequests", headers={"Retry-After": "30"}),
        watch(),
    )
    async with running(client, sink, time, PAGED):
        await until(lambda: len(api.requests) == 4)
    assert time.sleeps == [30.0, 30.0]
    assert api.requests[3].query["resourceVersion"] == "7"


async def test_waits_double_up_to_the_ceiling_and_start_short_again_after_health(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink
) -> None:
    time = FakeTime(dice=1.0)
    feed = Feed()
    api.on("GET", PODS, *[refuse(503)] * 7, answer(200, page("7")), feed.step, refuse(503), watch())
    async with running(client, sink, time, PAGED) as reflector:
        await asyncio.wait_for(reflector.synced.wait(), 5)
        assert time.sleeps == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
        await until(lambda: len(api.requests) == 9)
        time.now += 60  # the watch lives for a minute
        feed.end()
        await until(lambda: len(api.requests) == 11)
        assert time.sleeps[7:] == [0.5]
        assert reflector.stats.restarts == 8


async def test_a_watch_that_ends_at_once_does_not_make_us_spin(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink
) -> None:
    time = FakeTime(dice=1.0)
    api.on("GET", PODS, answer(200, page("7")), *[watch(then="end")] * 4, watch())
    async with running(client, sink, time, PAGED):
        await until(lambda: len(api.requests) == 6)
    assert time.sleeps == [0.5, 1.0, 2.0, 4.0]


async def test_a_watch_that_ends_in_its_time_is_opened_again_at_once(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    feed = Feed()
    api.on("GET", PODS, answer(200, page("7")), feed.step, watch())
    async with running(client, sink, time, PAGED):
        await until(lambda: len(api.requests) == 2)
        time.now += 400
        feed.end()
        await until(lambda: len(api.requests) == 3)
    assert time.sleeps == []


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_a_server_that_is_not_itself_yet_is_watched_from_the_same_version(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime, status: int
) -> None:
    api.on("GET", PODS, answer(200, page("7")), refuse(status), watch())
    async with running(client, sink, time, PAGED):
        await until(lambda: len(api.requests) == 3)
    assert api.requests[2].query["resourceVersion"] == "7"


@pytest.mark.parametrize("status", [400, 404, 504])
async def test_a_refused_watch_lists_anew(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime, status: int
) -> None:
    api.on("GET", PODS, answer(200, page("7")), refuse(status), answer(200, page("8", pod("a"))), watch())
    async with running(client, sink, time, PAGED):
        await sink.until(lambda: len(sink.log) == 2)
    assert sink.log[1] == ("replaced", "a")


async def test_an_object_that_cannot_be_decoded_is_passed_on_and_hurts_nothing_else(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    bad = pod("bad", "3")
    bad["spec"] = {"nodeName": 5}
    feed = Feed()
    api.on("GET", PODS, answer(200, page("7", pod("a"), bad, pod("c"))), feed.step)
    async with running(client, sink, time, PAGED) as reflector:
        await asyncio.wait_for(reflector.synced.wait(), 5)
        what = sink.broken["bad"]
        assert (what.namespace, what.name, what.uid) == ("n", "bad", "u-bad")
        assert json.loads(what.raw) == bad
        assert "$.spec.nodeName" in what.fault
        assert sink.names("Pod") == ["a", "c"]
        bad["metadata"]["resourceVersion"] = "8"
        feed.send(line("MODIFIED", bad) + line("DELETED", bad) + line("ADDED", pod("d", "9")))
        await sink.until(lambda: len(sink.log) == 4)
        assert reflector.stats.undecodable == 3
    assert sink.log[1:] == [("undecodable", "bad"), ("deleted", "bad"), ("upserted", "d")]


async def test_a_streamed_list_keeps_what_cannot_be_decoded(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    bad = pod("bad")
    bad["metadata"]["labels"] = ["no", "map"]
    api.on(
        "GET",
        PODS,
        watch(line("ADDED", pod("a")) + line("ADDED", bad) + bookmark("9", ends_list=True)),
    )
    async with running(client, sink, time) as reflector:
        await asyncio.wait_for(reflector.synced.wait(), 5)
    assert sink.log == [("replaced", "a")]
    assert sink.broken["bad"].uid == "u-bad"


async def test_a_line_that_is_no_json_lists_anew(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on(
        "GET", PODS, answer(200, page("7")), watch(b"{nonsense\n"), answer(200, page("8", pod("a"))), watch()
    )
    async with running(client, sink, time, PAGED):
        await sink.until(lambda: len(sink.log) == 2)
    assert sink.names("Pod") == ["a"]


async def test_a_value_that_the_ledger_cannot_read_makes_the_object_undecodable(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_it(kind: str, obj: Pod) -> None:
        raise WireError(f"{kind} {obj.metadata.name}: cpu")

    monkeypatch.setattr(sink, "upserted", refuse_it)
    api.on("GET", PODS, answer(200, page("7")), watch(line("ADDED", pod("a", "8"))))
    async with running(client, sink, time, PAGED):
        await sink.until(lambda: len(sink.log) == 2)
    assert sink.log[1] == ("undecodable", "a")
    assert json.loads(sink.broken["a"].raw)["metadata"]["uid"] == "u-a"


async def test_a_line_of_91_kilobytes_is_read(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {"uuid": {"string": "x" * 620}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for i in range(128)
    ]
    big = {
        "metadata": {"name": "s", "resourceVersion": "8"},
        "spec": {"driver": "d", "nodeName": "n", "devices": devices},
    }
    text = line("ADDED", big)
    assert len(text) > 91_000
    path = RESOURCE_SLICE.path("v1")
    api.on("GET", path, answer(200, page("7")), watch(text[:50_000], text[50_000:]))
    async with running(client, sink, time, PAGED, RESOURCE_SLICE):
        await sink.until(lambda: len(sink.log) == 2)
    assert len(sink.known["ResourceSlice"]["s"].spec.devices) == 128


async def test_resync_lists_anew_and_returns_when_the_sink_has_it(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on(
        "GET",
        PODS,
        answer(200, page("7", pod("a"))),
        watch(),
        answer(200, page("9", pod("b"))),
        watch(),
    )
    async with running(client, sink, time, PAGED) as reflector:
        await until(lambda: len(api.requests) == 2)
        await asyncio.wait_for(reflector.resync(), 5)
        assert sink.log == [("replaced", "a"), ("replaced", "b")]
        assert reflector.stats.restarts == 0


async def test_a_list_that_was_asked_for_before_a_resync_does_not_serve_it(
    client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    reflector = Reflector(client, POD, "v1", sink, pace=time.pace(), options=PAGED)
    resync = asyncio.create_task(reflector.resync())
    await asyncio.sleep(0)
    before = reflector._asked - 1
    reflector._deliver(_Found(), "7", before)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not resync.done()
    reflector._deliver(_Found(), "9", before + 1)
    await asyncio.wait_for(resync, 5)


async def test_resync_waits_through_an_outage(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    api.on(
        "GET",
        PODS,
        answer(200, page("7", pod("a"))),
        watch(),
        hang_up,
        hang_up,
        answer(200, page("9", pod("b"))),
        watch(),
    )
    async with running(client, sink, time, PAGED) as reflector:
        await until(lambda: len(api.requests) == 2)
        await asyncio.wait_for(reflector.resync(), 5)
        assert sink.names("Pod") == ["b"]


async def test_silence_is_counted_from_the_last_word_of_the_server(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime
) -> None:
    feed = Feed()
    api.on("GET", PODS, answer(200, page("7")), feed.step)
    async with running(client, sink, time, PAGED) as reflector:
        assert reflector.stats.silence(time.now) is None
        await until(lambda: len(api.requests) == 2)
        time.now += 50
        assert reflector.stats.silence(time.now) == 50
        feed.send(bookmark("8"))
        await until(lambda: reflector.stats.silence(time.now) == 0)


async def test_a_fault_of_the_sink_ends_the_reflector_loudly(
    api: ScriptedApi, client: ApiClient, sink: RecordingSink, time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(kind: str, obj: object) -> None:
        raise KeyError((kind, obj))

    monkeypatch.setattr(sink, "upserted", broken)
    api.on("GET", PODS, answer(200, page("7")), watch(line("ADDED", pod("a", "8"))))
    reflector = Reflector(client, POD, "v1", sink, pace=time.pace(), options=PAGED)
    with pytest.raises(KeyError):
        await asyncio.wait_for(reflector.run(), 5)
