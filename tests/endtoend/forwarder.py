"""Stands in for kube-proxy: forwards connections to the replica that the Service's EndpointSlice names.

As there, a connection stays with the endpoint that it was opened to; only new ones follow a change.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.controlplane.client import ApiClient

_LOOK_S = 0.1


class Forwarder:
    """A TCP forwarder on loopback; `port_of` gives the port that a pod's process listens on, by its name."""

    def __init__(
        self, client: ApiClient, namespace: str, service: str, port_of: Callable[[str], int | None]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._service = service
        self._port_of = port_of
        self._target: str | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._stop: Callable[[], None] = lambda: None
        self._ready = threading.Event()
        self.port = 0

    @property
    def target(self) -> str | None:
        """Name of the pod that new connections go to."""
        return self._target

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join(10)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)  # type: ignore[assignment]  # the handle is not needed
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        follow = asyncio.create_task(self._follow())
        self._ready.set()
        await stopped.wait()
        follow.cancel()
        server.close()

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # the API server may be away for a while
                self._target = await asyncio.to_thread(self._look)
            await asyncio.sleep(_LOOK_S)

    def _look(self) -> str | None:
        slices = self._client.list_all("discovery.k8s.io/v1", "EndpointSlice", self._namespace)
        for each in slices:
            if each["metadata"].get("labels", {}).get("kubernetes.io/service-name") != self._service:
                continue
            for endpoint in each.get("endpoints") or ():
                if endpoint.get("conditions", {}).get("ready") and endpoint.get("targetRef"):
                    name: str = endpoint["targetRef"]["name"]
                    return name
        return None

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = self._port_of(self._target or "")
        if port is None:
            writer.close()  # as a Service without endpoints: refused
            return
        try:
            onward, back = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, back), _pump(onward, writer), return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
