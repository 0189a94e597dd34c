"""The server and the tasks beside it: one that dies ends all, loudly; open requests finish either way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

import httpx
import pytest
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from extender.server.serve import HttpServer
from extender.settings import ServerSettings
from extender.wiring.tasks import Died, run_beside


class Server(HttpServer):
    """Tells that it was stopped."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(app, ServerSettings(port=0))
        self.stopping = asyncio.Event()

    def stop(self) -> None:
        super().stop()
        self.stopping.set()


class Slow:
    """A server with one route, which answers once the server was stopped."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.order: list[str] = []
        self.server = Server(Starlette(routes=[Route("/", self._answer)]))

    async def _answer(self, _: Request) -> Response:
        self.asked.set()
        await self.server.stopping.wait()
        self.order.append("answered")
        return PlainTextResponse("done")

    async def ask(self) -> str:
        async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
            return (await http.get(self.server.url)).text


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_task_that_fails_ends_the_process_and_is_logged_with_its_name() -> None:
    async def fails() -> None:
        raise KeyError("gone")

    with structlog.testing.capture_logs() as logs, pytest.raises(Died, match="reflectors: KeyError: 'gone'"):
        await asyncio.wait_for(run_beside(Slow().server, {"reflectors": fails, "other": for_ever}), 20)
    [line] = [line for line in logs if line["log_level"] == "critical"]
    assert (line["task"], line["fault"]) == ("reflectors", "KeyError: 'gone'")


async def test_the_faults_of_a_group_are_named_themselves() -> None:
    async def fails() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(inner())

    async def inner() -> None:
        raise ValueError("no list")

    with pytest.raises(Died, match=r"^cluster: ValueError: no list$"):
        await asyncio.wait_for(run_beside(Slow().server, {"cluster": fails}), 20)


async def test_a_task_may_return() -> None:
    slow = Slow()

    async def returns() -> None:
        return None

    async def stops() -> None:
        started.set()
        await listening.wait()
        slow.server.stop()

    started, listening = asyncio.Event(), asyncio.Event()
    await asyncio.wait_for(run_beside(slow.server, {"short": returns, "stop": stops}, listening), 20)
    assert started.is_set()


@pytest.mark.parametrize("ended_by", ["signal", "fault"])
async def test_an_open_request_is_answered_before_anything_stops(ended_by: str) -> None:
    slow = Slow()

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            slow.order.append("task stopped")

    async def asks() -> str:
        await listening.wait()
        return await slow.ask()

    async def ends() -> None:
        await slow.asked.wait()
        if ended_by == "fault":
            raise ValueError("dead")
        os.kill(os.getpid(), signal.SIGTERM)

    listening = asyncio.Event()
    asking = asyncio.create_task(asks())
    fault = pytest.raises(Died) if ended_by == "fault" else contextlib.nullcontext()
    with fault:
        await asyncio.wait_for(run_beside(slow.server, {"works": works, "ends": ends}, listening), 20)
    assert await asking == "done"
    assert slow.order == ["answered", "task stopped"]


async def test_a_task_that_does_not_stop_is_named_and_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("extender.wiring.tasks.STOP_SECONDS", 0.05)
    slow = Slow()
    freed = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await freed.wait()

    async def stops() -> None:
        await listening.wait()
        slow.server.stop()

    listening = asyncio.Event()
    with structlog.testing.capture_logs() as logs:
        await asyncio.wait_for(run_beside(slow.server, {"stubborn": stubborn, "stop": stops}, listening), 20)
    freed.set()
    assert [line["tasks"] for line in logs if line["event"] == "tasks did not stop"] == [["stubborn"]]
