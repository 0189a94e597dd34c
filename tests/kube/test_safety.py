"""The switch: one ConfigMap turns every veto off; what can't be read changes nothing."""

from __future__ import annotations

import asyncio

import pytest
import structlog

from extender.kube.client import ApiClient
from extender.kube.pace import Pace
from extender.kube.safety import SafetySwitch
from tests.kube.scripted_api import ScriptedApi, Step, answer, hang_up, refuse

PATH = "/api/v1/namespaces/berth-system/configmaps/berth-safety"


def switch(client: ApiClient, pace: Pace | None = None) -> SafetySwitch:
    return SafetySwitch(client, namespace="berth-system", name="berth-safety", pace=pace or Pace())


def said(value: object) -> Step:
    return answer(200, {"kind": "ConfigMap", "metadata": {"name": "berth-safety"}, "data": {"vetoes": value}})


async def test_vetoes_count_before_the_first_look(client: ApiClient) -> None:
    assert switch(client).vetoes


@pytest.mark.parametrize(
    ("value", "vetoes"), [("off", False), (" OFF ", False), ("on", True), ("", True), ("of", True)]
)
async def test_only_off_turns_vetoes_off(
    api: ScriptedApi, client: ApiClient, value: str, *, vetoes: bool
) -> None:
    api.on("GET", PATH, said(value))
    looked = switch(client)
    await looked.look()
    assert looked.vetoes is vetoes


async def test_a_word_that_is_neither_is_named_in_the_log_once(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PATH, said("offf"))
    looked = switch(client)
    with structlog.testing.capture_logs() as logs:
        await looked.look()
        await looked.look()
    assert [line["value"] for line in logs] == ["offf"]


@pytest.mark.parametrize("body", [{}, {"data": None}, {"data": {}}])
async def test_a_config_map_without_the_key_means_on(
    api: ScriptedApi, client: ApiClient, body: object
) -> None:
    api.on("GET", PATH, said("off"), answer(200, body))
    looked = switch(client)
    await looked.look()
    await looked.look()
    assert looked.vetoes


async def test_a_config_map_that_is_gone_means_on(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PATH, said("off"), refuse(404, "NotFound"))
    looked = switch(client)
    await looked.look()
    assert not looked.vetoes
    await looked.look()
    assert looked.vetoes


@pytest.mark.parametrize(
    "step",
    [refuse(500), refuse(403, "Forbidden"), hang_up, answer(200, b"{"), answer(200, {"data": {"vetoes": 1}})],
)
async def test_what_can_not_be_read_changes_nothing(api: ScriptedApi, client: ApiClient, step: Step) -> None:
    api.on("GET", PATH, said("off"), step)
    looked = switch(client)
    await looked.look()
    await looked.look()
    assert not looked.vetoes


async def test_a_long_outage_is_two_lines_in_the_log(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PATH, refuse(500), refuse(500), refuse(500), said("on"))
    looked = switch(client)
    with structlog.testing.capture_logs() as logs:
        for _ in range(4):
            await looked.look()
    assert [line["log_level"] for line in logs] == ["warning", "info"]


async def test_it_looks_again_after_two_seconds_or_a_little_more(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PATH, said("on"), said("off"))
    waits: list[float] = []
    seen = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            seen.set()
            await asyncio.Event().wait()

    looked = switch(client, Pace(sleep=sleep, chance=lambda: 0.5))
    task = asyncio.create_task(looked.run())
    await asyncio.wait_for(seen.wait(), 10)
    task.cancel()
    assert not looked.vetoes
    assert waits == [pytest.approx(2.2)] * 2
