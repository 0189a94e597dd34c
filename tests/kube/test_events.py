from __future__ import annotations

import asyncio
from dataclasses import replace

from extender.kube.client import ApiClient
from extender.kube.events import EventRecorder, Regarding
from tests.kube.recording import FakeTime, until
from tests.kube.scripted_api import ScriptedApi, answer, refuse

EVENTS = "/apis/events.k8s.io/v1/namespaces/n/events"
POD = Regarding("Pod", "p", "n", "u1")


def say(recorder: EventRecorder, note: str = "no node left", about: Regarding = POD) -> None:
    recorder.record(about, type="Warning", reason="GangDoesNotFit", note=note, action="Filter")


async def test_an_event_says_what_when_and_about_whom(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", EVENTS, answer(201, {}))
    recorder = EventRecorder(client, instance="berth-0", pace=FakeTime().pace())
    say(recorder, "x" * 5000)
    assert await recorder.flush() == 1
    event = api.requests[0].json
    assert event["eventTime"] == "2026-01-01T00:16:40.000000Z"
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "GangDoesNotFit", "Filter")
    assert event["regarding"]["uid"] == "u1"
    assert len(event["note"]) == 1024
    assert "series" not in event


async def test_the_same_message_again_is_one_event_with_a_series(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", EVENTS, answer(201, {}))
    recorder = EventRecorder(client, instance="berth-0", pace=FakeTime().pace())
    say(recorder)
    await recorder.flush()
    name = api.requests[0].json["metadata"]["name"]
    api.on("PATCH", f"{EVENTS}/{name}", answer(200, {}))
    for _ in range(4):
        say(recorder)
    assert await recorder.flush() == 1
    assert api.requests[1].json["series"]["count"] == 5


async def test_an_event_that_has_expired_is_written_anew(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", EVENTS, answer(201, {}))
    recorder = EventRecorder(client, instance="berth-0", pace=FakeTime().pace())
    say(recorder)
    await recorder.flush()
    say(recorder)
    await recorder.flush()  # its PATCH is a 404 here
    assert [r.method for r in api.requests] == ["POST", "PATCH", "POST"]
    assert api.requests[2].json["series"]["count"] == 2


async def test_after_the_series_time_the_message_is_a_new_event(api: ScriptedApi, client: ApiClient) -> None:
    time = FakeTime()
    api.on("POST", EVENTS, answer(201, {}))
    recorder = EventRecorder(client, instance="berth-0", pace=time.pace(), series_seconds=600)
    say(recorder)
    await recorder.flush()
    time.now += 600
    say(recorder)
    await recorder.flush()
    first, second = (r.json["metadata"]["name"] for r in api.requests)
    assert first != second


async def test_events_keep_to_their_rate_and_too_many_are_dropped(
    api: ScriptedApi, client: ApiClient
) -> None:
    time = FakeTime()
    api.on("POST", EVENTS, answer(201, {}))
    recorder = EventRecorder(client, instance="b", pace=time.pace(), per_second=1, burst=2, queue=5)
    for number in range(8):
        say(recorder, f"note {number}")
    assert recorder.stats.dropped == 3
    assert await recorder.flush() == 2
    time.now += 2
    assert await recorder.flush() == 2


async def test_a_refused_event_hurts_nobody(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", EVENTS, refuse(403))
    recorder = EventRecorder(client, instance="b", pace=FakeTime().pace())
    say(recorder)
    assert await recorder.flush() == 0
    assert recorder.stats.failed == 1


async def test_events_of_cluster_scoped_objects_live_in_default(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", "/apis/events.k8s.io/v1/namespaces/default/events", answer(201, {}))
    recorder = EventRecorder(client, instance="b", pace=FakeTime().pace())
    say(recorder, about=Regarding("Node", "n1", uid="u"))
    assert await recorder.flush() == 1


async def test_what_waits_when_the_lead_is_lost_is_not_told_in_a_later_term(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("POST", EVENTS, answer(201, {}))
    time = FakeTime()

    async def never(_: float) -> None:
        await asyncio.Event().wait()

    pace = replace(time.pace(), sleep=never)
    recorder = EventRecorder(client, instance="b", pace=pace, burst=1)
    for number in range(4):
        say(recorder, f"note {number}")
    first = asyncio.create_task(recorder.run())
    await until(lambda: recorder.stats.written == 1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert recorder.stats.dropped == 3
    time.now += 3600
    assert await recorder.flush() == 0
    say(recorder, "note 3")
    assert await recorder.flush() == 1
    assert [r.json["note"] for r in api.requests] == ["note 0", "note 3"]


async def test_a_message_that_waited_past_its_series_is_written_once(
    api: ScriptedApi, client: ApiClient
) -> None:
    time = FakeTime()
    api.on("POST", EVENTS, answer(201, {}))
    recorder = EventRecorder(client, instance="b", pace=time.pace(), series_seconds=600)
    say(recorder)
    time.now += 600
    say(recorder)
    assert await recorder.flush() == 1
    assert [r.method for r in api.requests] == ["POST"]
