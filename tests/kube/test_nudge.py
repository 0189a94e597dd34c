from __future__ import annotations

import asyncio

import pytest

from extender.kube.client import ApiClient
from extender.kube.nudge import NUDGE_ANNOTATION, Nudger
from tests.kube.recording import FakeTime, until
from tests.kube.scripted_api import Reply, Request, ScriptedApi, answer, refuse

PATH = "/api/v1/namespaces/n/pods/"


async def test_a_nudge_patches_the_annotation_of_that_very_pod(api: ScriptedApi, client: ApiClient) -> None:
    api.on("PATCH", f"{PATH}p", answer(200, {}))
    nudger = Nudger(client, lambda: True, pace=FakeTime().pace())
    nudger.add("n", "p", "u1")
    nudger.add("n", "p", "u1")
    assert await nudger.flush() == 1
    metadata = api.requests[0].json["metadata"]
    assert metadata == {"uid": "u1", "annotations": {NUDGE_ANNOTATION: "2026-01-01T00:16:40.000000Z"}}
    assert (nudger.stats.sent, nudger.waiting) == (1, 0)


async def test_nudges_keep_to_their_rate(api: ScriptedApi, client: ApiClient) -> None:
    time = FakeTime()
    nudger = Nudger(client, lambda: True, pace=time.pace(), per_second=2, burst=3)
    for number in range(10):
        api.on("PATCH", f"{PATH}p{number}", answer(200, {}))
        nudger.add("n", f"p{number}", f"u{number}")
    assert await nudger.flush() == 3
    assert await nudger.flush() == 0
    time.now += 1
    assert await nudger.flush() == 2
    assert [r.path[-2:] for r in api.requests] == ["p0", "p1", "p2", "p3", "p4"]


@pytest.mark.parametrize("status", [404, 409])
async def test_a_pod_that_is_gone_is_forgotten(api: ScriptedApi, client: ApiClient, status: int) -> None:
    api.on("PATCH", f"{PATH}p", refuse(status))
    nudger = Nudger(client, lambda: True, pace=FakeTime().pace())
    nudger.add("n", "p", "u1")
    assert await nudger.flush() == 0
    assert (nudger.stats.vanished, nudger.waiting) == (1, 0)


async def test_another_pod_of_the_name_is_left_alone(api: ScriptedApi, client: ApiClient) -> None:
    api.on("PATCH", f"{PATH}p", refuse(422, "Invalid", "metadata.uid: Invalid value: field is immutable"))
    nudger = Nudger(client, lambda: True, pace=FakeTime().pace())
    nudger.add("n", "p", "u1")
    await nudger.flush()
    assert (nudger.stats.vanished, nudger.waiting) == (1, 0)


async def test_a_nudge_that_is_forbidden_is_given_up(api: ScriptedApi, client: ApiClient) -> None:
    api.on("PATCH", f"{PATH}p", refuse(403))
    nudger = Nudger(client, lambda: True, pace=FakeTime().pace())
    nudger.add("n", "p", "u1")
    await nudger.flush()
    assert (nudger.stats.failed, nudger.waiting, len(api.requests)) == (1, 0, 1)


async def test_a_failed_nudge_is_not_repeated_within_one_round(api: ScriptedApi, client: ApiClient) -> None:
    api.on("PATCH", f"{PATH}p", refuse(500))
    nudger = Nudger(client, lambda: True, pace=FakeTime().pace())
    nudger.add("n", "p", "u1")
    await nudger.flush()
    assert (len(api.requests), nudger.waiting) == (1, 1)


async def test_a_failed_nudge_is_tried_again_at_the_rate(api: ScriptedApi, client: ApiClient) -> None:
    time = FakeTime()
    nudger = Nudger(client, lambda: True, pace=time.pace(), per_second=1, burst=1)
    api.on("PATCH", f"{PATH}p", refuse(500), answer(200, {}))
    nudger.add("n", "p", "u1")
    running = asyncio.create_task(nudger.run())
    await until(lambda: nudger.stats.sent == 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert nudger.stats.failed == 1
    assert time.sleeps == [pytest.approx(1.0)]


async def test_a_lease_lost_by_the_clock_ends_the_patches_at_once(
    api: ScriptedApi, client: ApiClient
) -> None:
    time = FakeTime()
    until_when = time.now + 7

    async def slowly(_: Request, reply: Reply) -> None:
        time.now += 4
        await reply.send(200, {})

    nudger = Nudger(client, lambda: time.now < until_when, pace=time.pace())
    for number in range(5):
        api.on("PATCH", f"{PATH}p{number}", slowly)
        nudger.add("n", f"p{number}", f"u{number}")
    assert await nudger.flush() == 2
    assert await nudger.flush() == 0
    assert [r.path[-2:] for r in api.requests] == ["p0", "p1"]
    assert nudger.waiting == 3


async def test_what_waits_while_the_lease_is_in_doubt_is_sent_once_it_is_renewed(
    api: ScriptedApi, client: ApiClient
) -> None:
    time = FakeTime()
    api.on("PATCH", f"{PATH}p", answer(200, {}))
    nudger = Nudger(client, lambda: time.now >= 1003, pace=time.pace())
    nudger.add("n", "p", "u1")
    running = asyncio.create_task(nudger.run())
    await until(lambda: nudger.stats.sent == 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert time.sleeps == [1.0, 1.0, 1.0]
