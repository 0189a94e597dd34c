"""The listener: uvicorn on one event loop, stopped gently.

Never: a second worker (state lives in one process), an access log, or an exit of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp

from extender.model.errors import SettingsError
from extender.server.certificates import CertificateProtocol, Certificates
from extender.settings import ServerSettings

BACKLOG = 2048
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class HttpServer:
    """Serves `app` as `settings` say.

    The socket is bound at once, so `port` is known (and a taken port is found) before anything runs.

    Raises:
        SettingsError: The address can't be bound, or the certificates can't be read.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._settings = settings
        self._certificates = Certificates(settings.tls) if settings.tls is not None else None
        self._socket = _bind(settings)
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(_config(app, settings, self._certificates))

    @property
    def url(self) -> str:
        """Where it listens."""
        scheme = "http" if self._certificates is None else "https"
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        return f"{scheme}://{host}:{self.port}"

    async def run(
        self, started: Callable[[], None] | None = None, signals: Sequence[signal.Signals] = STOP_SIGNALS
    ) -> None:
        """Serve until `stop` or a signal, then finish the open requests and return.

        Args:
            started: Called when connections are accepted.
            signals: Signals that stop the server; a second one cuts what is open.
        """
        loop = asyncio.get_running_loop()
        self._server.on_started = started
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._certificates.watch()) if self._certificates else None
            for number in signals:
                loop.add_signal_handler(number, self.stop)
            try:
                structlog.get_logger(__name__).info("listening", url=self.url)
                await self._server.serve(sockets=[self._socket])
            finally:
                for number in signals:
                    loop.remove_signal_handler(number)
                if watching is not None:
                    watching.cancel()

    def stop(self) -> None:
        """Accept no more and finish what is open, for at most the grace; the second call cuts it."""
        if self._server.should_exit:
            self._server.force_exit = True
        self._server.should_exit = True


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on a uvloop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def freeze_after(synced: asyncio.Event) -> None:
    """Take what the first sync has made out of the garbage collector's sight, once.

    Without it every full collection walks the whole ledger, which is most of the time of a slow answer.
    """
    await synced.wait()
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process by the signal that stopped it."""

    on_started: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.on_started is not None:
            self.on_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: ASGIApp, settings: ServerSettings, certificates: Certificates | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=CertificateProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody in front of us may say that a connection was TLS
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.shutdown_grace_seconds,
        ssl_context_factory=None if certificates is None else lambda _config, _default: certificates.context,
    )


def _bind(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingsError(
            f"server: can't listen on {settings.host} port {settings.port}: {error}"
        ) from error
