"""A real server on loopback, on its own thread and uvloop, for tests that talk to it over sockets."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from starlette.types import ASGIApp

from extender.server.serve import HttpServer, run_loop
from extender.settings import ServerSettings

CERTS = Path(__file__).parent / "certs"
PATIENCE = 20.0


@contextlib.contextmanager
def running(app: ASGIApp, settings: ServerSettings | None = None) -> Iterator[HttpServer]:
    """Serve an app on a free port until the block ends; a fault of the server's thread is raised here."""
    server = HttpServer(app, settings or ServerSettings(port=0))
    started = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    faults: list[BaseException] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await server.run(started.set, signals=())

    def thread() -> None:
        try:
            run_loop(serve())
        except BaseException as error:  # noqa: BLE001 - handed over to the test's thread
            faults.append(error)
            started.set()

    worker = threading.Thread(target=thread)
    worker.start()
    try:
        assert started.wait(PATIENCE), "the server did not start"
        if faults:
            raise faults[0]
        yield server
    finally:
        if loops and not loops[0].is_closed():
            loops[0].call_soon_threadsafe(server.stop)
        worker.join(PATIENCE)
        assert not worker.is_alive(), "the server did not stop"
