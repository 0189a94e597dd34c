"""The composition of the agent: `run_agent(settings)`.

Everything is built once here and ends together, at SIGTERM, SIGINT or cancellation.
"""

from __future__ import annotations

import asyncio
import signal
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from extender.telemetry.agent.book import NodeBook
from extender.telemetry.agent.clock import Clock
from extender.telemetry.agent.delivery import Delivery, Resolve, resolve_by_dns
from extender.telemetry.agent.metrics import AgentMetrics
from extender.telemetry.agent.pods import with_pods
from extender.telemetry.agent.poller import Poller
from extender.telemetry.agent.process import Launch
from extender.telemetry.agent.serving import build_app, build_server
from extender.telemetry.agent.settings import AgentSettings

_BOOT_ID: Final = "sys/kernel/random/boot_id"


class Turning:
    """Alive as long as `turns` grows, or has been still for less than `patience_s`."""

    def __init__(self, poller: Poller, clock: Clock, patience_s: float) -> None:
        self._poller = poller
        self._clock = clock
        self._patience_ns = int(patience_s * 1e9)
        self._seen = -1
        self._since = clock.monotonic_ns()

    def __call__(self) -> bool:
        """Whether the loop still turns."""
        now = self._clock.monotonic_ns()
        if self._poller.turns != self._seen:
            self._seen, self._since = self._poller.turns, now
        return now - self._since <= self._patience_ns


def patience(settings: AgentSettings) -> float:
    """The longest that a sound poll loop can take for one turn."""
    return (
        max(settings.first_deadline_seconds, settings.deadline_seconds, settings.poll_seconds)
        + settings.publish_grace_seconds
        + settings.stop_grace_seconds
        + settings.reap_seconds
        + settings.restart_max_seconds
        + 10.0
    )


def read_boot_id(proc_root: Path) -> str:
    """The kernel's id of this boot; "unknown" where it can't be read."""
    try:
        return (proc_root / _BOOT_ID).read_text().strip() or "unknown"
    except OSError:
        return "unknown"


async def run_agent(
    settings: AgentSettings,
    *,
    clock: Clock | None = None,
    launch: Launch | None = None,
    resolve: Resolve = resolve_by_dns,
) -> None:
    """Run until SIGTERM, SIGINT or cancellation. Raises what any of its parts raises."""
    clock = clock or Clock()
    metrics = AgentMetrics()
    book = NodeBook(
        node=settings.node_name,
        boot_id=read_boot_id(settings.proc_root),
        agent_id=str(uuid.uuid4()),
        bounds=settings.changes,
        xid_keep_seconds=settings.xid_keep_seconds,
        name_pods=partial(with_pods, proc_root=settings.proc_root),
    )
    delivery = Delivery(settings=settings, clock=clock, book=book, metrics=metrics, resolve=resolve)
    launch = launch or Launch(settings.event_wait_milliseconds, settings.sysfs_root)
    poller = Poller(
        settings=settings, clock=clock, book=book, outbox=delivery, metrics=metrics, launch=launch
    )
    alive = Turning(poller, clock, patience(settings))
    server = build_server(build_app(book, clock, metrics, alive), settings.listen_host, settings.listen_port)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(ValueError):  # not in the main thread: the caller has the signals
            loop.add_signal_handler(number, stop.set)
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(part.run()) for part in (delivery, poller)]
            serving = group.create_task(server.serve())
            await stop.wait()
            server.should_exit = True
            for task in running:
                task.cancel()
            await serving
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(ValueError):
                loop.remove_signal_handler(number)
