"""The agent's own small server: /healthz, /metrics, /sample.

A wedged driver does not fail /healthz: a restarted agent would only add a second stuck reader.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from extender.api.telemetry import DeviceState, DriverState
from extender.telemetry.agent.book import NodeBook
from extender.telemetry.agent.clock import Clock
from extender.telemetry.agent.metrics import AgentMetrics

_AGE_HEADER: Final = "x-berth-age-seconds"


class QuietServer(uvicorn.Server):
    """uvicorn without its signal handlers: the agent has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signals."""
        yield


def build_app(book: NodeBook, clock: Clock, metrics: AgentMetrics, alive: Callable[[], bool]) -> Starlette:
    """The three routes. `alive` tells whether the agent's own loop still turns."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok" if alive() else "the poll loop has stopped", 200 if alive() else 503)

    async def sample(_: Request) -> Response:
        now = clock.monotonic_ns()
        peek = book.peek(now, clock.wall_ns())
        age = (peek.sent_ns - peek.read_ns) / 1e9
        return Response(
            msgspec.json.encode(peek),
            media_type="application/json",
            headers={_AGE_HEADER: f"{age:.3f}"},
        )

    async def exposition(_: Request) -> Response:
        _refresh(book, clock, metrics)
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[Route("/healthz", healthz), Route("/sample", sample), Route("/metrics", exposition)]
    )


def _refresh(book: NodeBook, clock: Clock, metrics: AgentMetrics) -> None:
    for state in DriverState:
        metrics.driver_state.labels(str(state)).set(float(book.driver.state is state))
    for kind in DeviceState:
        metrics.devices.labels(str(kind)).set(sum(d.state is kind for d in book.devices))
    metrics.event_error.set(book.event_error)
    peek = book.peek(clock.monotonic_ns(), clock.wall_ns())
    metrics.read_age.set((peek.sent_ns - peek.read_ns) / 1e9)


def build_server(app: Starlette, host: str, port: int) -> QuietServer:
    """A server for the app, not yet started."""
    return QuietServer(
        uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False, lifespan="off")
    )
