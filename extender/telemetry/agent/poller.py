"""The loop that asks the reader, and the watchdog over it.

                start                  answer within deadline
    [no reader] -----> [asking] ------------------------------> [resting] -+
        ^                |   |                                      |      | poll_seconds, or an event
        | back-off       |   | Fault, or it ended                   +------+
        +----------------|---+
        ^                | deadline passed
        |                v
        |   [reported as unresponsive] --publish_grace--> [killed] --reaped--> back-off
        |                                                    | not within reap_seconds
        +------------- it went after all ------------- [stuck: no second reader]

Never: calls NVML; sends anything (it pokes `Outbox`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import structlog

from extender.api.telemetry import DriverState
from extender.telemetry.agent.backoff import Backoff
from extender.telemetry.agent.book import NodeBook
from extender.telemetry.agent.clock import Clock
from extender.telemetry.agent.frames import Fault, Heard
from extender.telemetry.agent.metrics import AgentMetrics
from extender.telemetry.agent.process import Launch, ReaderGone, ReaderProcess
from extender.telemetry.agent.settings import AgentSettings
from extender.telemetry.agent.stuck import StuckMark

_STUCK_POLL_S: Final = 1.0


class Outbox(Protocol):
    """Who sends what the book holds."""

    def poke(self) -> None:
        """The book's version may have grown."""

    async def flushed(self, seconds: float) -> None:
        """Return when every replica was tried with the book's version, or after so long."""


class Poller:
    """Keeps one reader asked. `run()` ends by cancellation only, and then ends the reader."""

    def __init__(
        self,
        *,
        settings: AgentSettings,
        clock: Clock,
        book: NodeBook,
        outbox: Outbox,
        metrics: AgentMetrics,
        launch: Launch,
        start: Callable[[Launch, Callable[[Heard], None]], ReaderProcess] = ReaderProcess,
    ) -> None:
        self._log = structlog.get_logger(__name__)
        self._settings = settings
        self._clock = clock
        self._book = book
        self._outbox = outbox
        self._metrics = metrics
        self._launch = launch
        self._start = start
        self._mark = StuckMark(settings.state_dir, settings.proc_root)
        self._again = asyncio.Event()
        self._listed_ns: int | None = None
        self.turns = 0  # of the loop: what /healthz watches

    async def run(self) -> None:
        """Start, ask, restart."""
        backoff = Backoff(self._settings.restart_min_seconds, self._settings.restart_max_seconds)
        while True:
            await self._wait_out_a_stuck_reader()
            self._metrics.reader_starts.inc()
            reader = self._start(self._launch, self._hear)
            try:
                await self._ask_until_it_fails(reader, backoff)
            except asyncio.CancelledError:
                if not await reader.end(self._settings.stop_grace_seconds):
                    reader.kill()
                    await reader.gone_within(self._settings.reap_seconds)
                raise
            finally:
                await reader.release()
            await asyncio.sleep(backoff.next())

    async def _ask_until_it_fails(self, reader: ReaderProcess, backoff: Backoff) -> None:
        deadline = self._settings.first_deadline_seconds
        self._listed_ns = None
        while True:
            self.turns += 1
            began = self._clock.monotonic_ns()
            processes = self._listing_due(began)
            try:
                async with asyncio.timeout(deadline):
                    word = await reader.ask(processes=processes)
            except TimeoutError:
                await self._hung(reader, deadline)
                return
            except ReaderGone as gone:
                await self._ended(reader, str(gone))
                return
            if isinstance(word, Fault):
                self._set_driver(word.state, word.code, word.operation)
                await self._ended(reader, "", state=word.state)
                return
            ended = self._clock.monotonic_ns()
            self._metrics.readings.inc()
            self._metrics.reading_seconds.observe((ended - began) / 1e9)
            if processes:
                self._listed_ns = ended
            self._book.answered(word, began, processes=processes)
            self._outbox.poke()
            backoff.reset()
            deadline = self._settings.deadline_seconds
            await self._rest()

    def _listing_due(self, now_ns: int) -> bool:
        return self._listed_ns is None or now_ns - self._listed_ns >= self._settings.processes_seconds * 1e9

    async def _rest(self) -> None:
        await asyncio.sleep(min(self._settings.event_gap_seconds, self._settings.poll_seconds))
        rest = self._settings.poll_seconds - self._settings.event_gap_seconds
        if rest > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._again.wait()
        self._again.clear()

    async def _hung(self, reader: ReaderProcess, deadline: float) -> None:
        operation = reader.operation() or "no NVML call"
        self._set_driver(
            DriverState.UNRESPONSIVE, 0, operation, f"no answer within {deadline:g} s: {operation}"
        )
        await self._outbox.flushed(self._settings.publish_grace_seconds)  # reported first, killed second
        reader.kill()
        self._metrics.reader_ends.labels("hung").inc()
        if await reader.gone_within(self._settings.reap_seconds):
            return
        self._metrics.reader_stuck.set(1)
        self._mark.set(reader.pid)
        while not await reader.gone_within(_STUCK_POLL_S):
            self.turns += 1
            reader.kill()
        self._mark.clear()
        self._metrics.reader_stuck.set(0)

    async def _ended(self, reader: ReaderProcess, text: str, state: DriverState | None = None) -> None:
        if not await reader.gone_within(self._settings.stop_grace_seconds):
            reader.kill()
            await reader.gone_within(self._settings.reap_seconds)
        self._metrics.reader_ends.labels(str(state) if state else "ended").inc()
        if state is None:
            self._set_driver(DriverState.ERROR, 0, "", f"{text}, status {reader.exit_status()}")

    def _set_driver(self, state: DriverState, code: int, operation: str, text: str = "") -> None:
        before = self._book.driver.state
        self._book.driver_is(state, code, operation, text)
        if self._book.driver.state is not before:
            why = text or operation
            self._log.warning("driver state", state=str(state), before=str(before), code=code, why=why)
        self._outbox.poke()

    def _hear(self, word: Heard) -> None:
        if self._book.heard(word, self._clock.monotonic_ns()):
            self._metrics.xids.labels(str(word.code)).inc()
            self._log.warning("xid", xid=word.code, uuid=word.uuid, gpu_instance=word.gpu_instance)
            self._outbox.poke()
        self._again.set()

    async def _wait_out_a_stuck_reader(self) -> None:
        while (pid := self._mark.still_there()) is not None:
            self._metrics.reader_stuck.set(1)
            self._set_driver(
                DriverState.UNRESPONSIVE, 0, "", f"reader {pid} of an earlier agent is still stuck"
            )
            self.turns += 1
            await asyncio.sleep(_STUCK_POLL_S)
        self._metrics.reader_stuck.set(0)
