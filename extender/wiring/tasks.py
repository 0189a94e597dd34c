"""The life of a replica: the HTTP server, and the tasks that run beside it until it stops.

    running ──SIGTERM, or `stop`──────────────> open requests finish ──> tasks cancelled (leader label off,
       └────a task of ours died (logged)──────> likewise           Lease released) ──> return, or `Died`

Never: what a task does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

import structlog

from extender.model.errors import BerthError
from extender.server.serve import HttpServer

STOP_SECONDS = 10.0
"""How long cancelled tasks may take: the leader label goes within two, the Lease within two more."""

Work = Callable[[], Coroutine[Any, Any, None]]


class Died(BerthError):  # noqa: N818 - a word for the process, not for a request
    """A task that the replica can't do without has ended by a fault."""


async def run_beside(
    server: HttpServer, tasks: Mapping[str, Work], started: asyncio.Event | None = None
) -> None:
    """Serve until stopped, with `tasks` (by name) beside; a task may return, but not fail.

    `started` is set once connections are accepted.

    Raises:
        Died: a task or the server has failed; it was logged, open requests were finished.
    """
    log = structlog.get_logger("extender.wiring")
    faults: list[str] = []

    def died(name: str, fault: BaseException) -> None:
        faults.append(f"{name}: {_said(fault)}")
        log.critical("a task has died, so the process ends", task=name, fault=_said(fault), exc_info=fault)

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            died(task.get_name(), fault)
            server.stop()

    running = [asyncio.create_task(work(), name=name) for name, work in tasks.items()]
    for task in running:
        task.add_done_callback(ended)
    try:
        await server.run(started.set if started is not None else None)
    except Exception as fault:  # noqa: BLE001 - whatever it is, it must be logged and end the process
        died("server", fault)
    finally:
        for task in running:
            task.cancel()
        if running:
            _, left = await asyncio.wait(running, timeout=STOP_SECONDS)
            if left:
                log.error("tasks did not stop", tasks=sorted(task.get_name() for task in left))
    if faults:
        raise Died("; ".join(faults))


def _said(fault: BaseException) -> str:
    """The faults themselves, without the groups that they came in."""
    return "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in _leaves(fault))


def _leaves(fault: BaseException) -> Iterator[BaseException]:
    if isinstance(fault, BaseExceptionGroup):
        for inner in fault.exceptions:
            yield from _leaves(inner)
    else:
        yield fault
