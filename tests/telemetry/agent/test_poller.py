"""The watchdog, with real readers on the fake library and a parent in this process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from extender.api.telemetry import DriverState
from extender.telemetry.agent.book import NodeBook
from extender.telemetry.agent.clock import Clock
from extender.telemetry.agent.metrics import AgentMetrics
from extender.telemetry.agent.poller import Poller
from extender.telemetry.agent.process import Launch, send_signal
from extender.telemetry.agent.settings import AgentSettings, ChangeBounds
from extender.telemetry.agent.stuck import StuckMark
from tests.fake_nvml.fakenvml import State
from tests.telemetry.conftest import QUICK, until

pytestmark = pytest.mark.slow


class Quiet:
    """An outbox that sends nothing and says at once that it did."""

    def poke(self) -> None:
        pass

    async def flushed(self, seconds: float) -> None:
        pass


class Watched:
    """A running poller whose kills can be held back: a process that SIGKILL does not end."""

    def __init__(self, gpus: State, library: Path, **settings: Any) -> None:
        self.kills: list[int] = []
        self.mercy = True
        whole = AgentSettings(**{**QUICK, "reap_seconds": 0.2, "target": "http://localhost:1", **settings})
        self.book = NodeBook(
            node="n1", boot_id="b", agent_id="a", bounds=ChangeBounds(), xid_keep_seconds=600.0
        )
        self.metrics = AgentMetrics()
        launch = Launch(50, Path("/sys"), gpus.environment(library), self._signal)
        self.poller = Poller(
            settings=whole,
            clock=Clock(),
            book=self.book,
            outbox=Quiet(),
            metrics=self.metrics,
            launch=launch,
        )

    def _signal(self, pid: int, number: int) -> None:
        self.kills.append(pid)
        if not self.mercy:
            send_signal(pid, number)

    def readers(self) -> list[int]:
        children = psutil.Process(os.getpid()).children()
        found = []
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.status() != psutil.STATUS_ZOMBIE and "agent.reader" in " ".join(child.cmdline()):
                    found.append(child.pid)
        return found

    def stuck(self) -> float:
        return float(self.metrics.reader_stuck._value.get())


@contextlib.asynccontextmanager
async def running(watched: Watched) -> AsyncIterator[Watched]:
    task = asyncio.create_task(watched.poller.run())
    try:
        yield watched
    finally:
        watched.mercy = False
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_reader_that_will_not_die_is_waited_for_and_no_second_one_is_started(
    gpus: State, library: Path
) -> None:
    async with running(Watched(gpus, library)) as watched:
        await until(lambda: watched.book.driver.state is DriverState.OK)
        (pid,) = watched.readers()
        gpus.put({"gpu0.delay_ms.nvmlDeviceGetTemperature": -1})
        await until(lambda: watched.stuck() == 1)
        gpus.put({"delay_ms.nvmlInitWithFlags": 0})
        turns = watched.poller.turns
        await until(lambda: watched.poller.turns >= turns + 2)  # it waits, alive
        assert watched.readers() == [pid]
        assert set(watched.kills) == {pid}
        assert watched.book.driver.state is DriverState.UNRESPONSIVE
        watched.mercy = False
        gpus.put({"gpu0.delay_ms.nvmlDeviceGetTemperature": None})
        await until(lambda: watched.book.driver.state is DriverState.OK)
        assert watched.stuck() == 0
        assert watched.readers() != [pid]


async def test_a_stuck_reader_of_an_earlier_agent_is_waited_for(
    gpus: State, library: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    sleeper = await asyncio.create_subprocess_exec("sleep", "600")
    try:
        StuckMark(state, Path("/proc")).set(sleeper.pid)
        async with running(Watched(gpus, library, state_dir=state)) as watched:
            await until(lambda: watched.stuck() == 1)
            assert watched.readers() == []
            assert watched.book.driver.state is DriverState.UNRESPONSIVE
            assert str(sleeper.pid) in watched.book.driver.text
            sleeper.send_signal(signal.SIGKILL)
            await sleeper.wait()
            await until(lambda: watched.book.driver.state is DriverState.OK)
    finally:
        with contextlib.suppress(ProcessLookupError):
            sleeper.kill()


async def test_the_mark_is_written_while_a_reader_is_stuck_and_cleared_after(
    gpus: State, library: Path, tmp_path: Path
) -> None:
    mark = StuckMark(tmp_path, Path("/proc"))
    async with running(Watched(gpus, library, state_dir=tmp_path)) as watched:
        await until(lambda: watched.book.driver.state is DriverState.OK)
        (pid,) = watched.readers()
        gpus.put({"gpu0.delay_ms.*": -1})
        await until(lambda: mark.still_there() == pid)
        watched.mercy = False
        gpus.put({"gpu0.delay_ms.*": None})
        await until(lambda: mark.still_there() is None)


async def test_a_healthy_reader_is_asked_to_end_and_never_killed(gpus: State, library: Path) -> None:
    watched = Watched(gpus, library)
    async with running(watched):
        await until(lambda: watched.book.driver.state is DriverState.OK)
    assert watched.kills == []
    assert watched.readers() == []


async def test_a_reader_that_crashes_is_replaced(gpus: State, library: Path) -> None:
    async with running(Watched(gpus, library)) as watched:
        await until(lambda: watched.book.driver.state is DriverState.OK)
        (pid,) = watched.readers()
        os.kill(pid, signal.SIGSEGV)
        await until(lambda: watched.readers() not in ([], [pid]))
        await until(lambda: watched.book.driver.state is DriverState.OK)
