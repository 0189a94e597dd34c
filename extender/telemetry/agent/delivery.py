"""Samples to every replica: on change, at the heartbeat, with back-off, each replica on its own.

The headless Service is resolved again and again; a replica is an address. The token is read from its file at
each send, because a projected token rotates, and never leaves this machine over plain http.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import httpx
import msgspec

from extender.api.telemetry import PATH
from extender.model.addresses import is_loopback
from extender.telemetry.agent.backoff import Backoff
from extender.telemetry.agent.book import NodeBook
from extender.telemetry.agent.clock import Clock
from extender.telemetry.agent.metrics import AgentMetrics
from extender.telemetry.agent.settings import AgentSettings, split_address

Address = tuple[str, int]
Resolve = Callable[[str, int], Awaitable[Iterable[Address]]]
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


async def resolve_by_dns(host: str, port: int) -> set[Address]:
    """All addresses of a name. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return {(str(entry[4][0]), port) for entry in found}


class Delivery:
    """The outbox of `poller`. `run()` ends by cancellation, or by a fault of ours, which ends the agent."""

    def __init__(
        self,
        *,
        settings: AgentSettings,
        clock: Clock,
        book: NodeBook,
        metrics: AgentMetrics,
        resolve: Resolve = resolve_by_dns,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.book = book
        self.metrics = metrics
        self._resolve = resolve
        self._replicas: dict[Address, _Replica] = {}
        self.tried = asyncio.Event()

    def poke(self) -> None:
        """The book's version may have grown."""
        for replica in self._replicas.values():
            replica.poked.set()

    async def flushed(self, seconds: float) -> None:
        """Return when every replica was tried with the book's version, or after so long."""
        version = self.book.version
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(r.tried_version < version for r in self._replicas.values()):
                    self.tried.clear()
                    await self.tried.wait()

    async def run(self) -> None:
        """Keep one task a replica, as the name resolves."""
        url = urlsplit(self.settings.target)
        tasks: dict[Address, asyncio.Task[None]] = {}
        try:
            while True:
                wanted = await self._addresses(url.hostname or "", url.port or _DEFAULT_PORTS[url.scheme])
                if wanted is not None:
                    for gone in tasks.keys() - wanted:
                        tasks.pop(gone).cancel()
                        del self._replicas[gone]
                    for address in wanted - tasks.keys():
                        self._replicas[address] = replica = _Replica(self, address)
                        tasks[address] = asyncio.create_task(replica.run())
                    self.metrics.replicas.set(len(tasks))
                await _fault_of(tasks.values(), self.settings.resolve_seconds)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _addresses(self, host: str, port: int) -> set[Address] | None:
        """The replicas to send to; None when the name can't be resolved just now."""
        if self.settings.addresses:
            given = (split_address(a) for a in self.settings.addresses)
            return {(h, p or port) for h, p in given}
        try:
            found = set(await self._resolve(host, port))
        except OSError:
            self.metrics.sends.labels("unresolved").inc()
            return None
        if self.settings.target.startswith("http:"):
            found = {a for a in found if is_loopback(a[0])}
        return found


async def _fault_of(tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
    """Wait so long. Raises the fault of the first task that ends: nothing else would tell of it."""
    pause = asyncio.ensure_future(asyncio.sleep(seconds))
    try:
        ended, _ = await asyncio.wait({pause, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        pause.cancel()


class _Replica:
    def __init__(self, delivery: Delivery, address: Address) -> None:
        self._settings = delivery.settings
        self._clock = delivery.clock
        self._book = delivery.book
        self._metrics = delivery.metrics
        self._tried = delivery.tried
        url = urlsplit(self._settings.target)
        host, port = address
        self._host = url.hostname or ""
        self._url = f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
        self._netloc = url.netloc
        self._encoder = msgspec.msgpack.Encoder()
        self.poked = asyncio.Event()
        self.tried_version = 0

    async def run(self) -> None:
        backoff = Backoff(self._settings.send_gap_seconds, self._settings.send_backoff_max_seconds)
        while True:
            async with self._client() as client:
                while await self._send(client):
                    backoff.reset()
                    await self._until_due()
            # A new client reads the CA anew.
            await asyncio.sleep(backoff.next())

    def _client(self) -> httpx.AsyncClient:
        ca = self._settings.ca_file
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody
        if self._settings.target.startswith("https:"):
            with suppress(OSError):  # a CA that can't be read yet: the handshake fails, and is tried again
                trust = ssl.create_default_context(cafile=str(ca) if ca else None)
        return httpx.AsyncClient(
            verify=trust,
            trust_env=False,  # no proxy ever sees the token
            follow_redirects=False,
            timeout=self._settings.send_timeout_seconds,
        )

    async def _until_due(self) -> None:
        await asyncio.sleep(self._settings.send_gap_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(
                max(0.0, self._settings.heartbeat_seconds - self._settings.send_gap_seconds)
            ):
                while self.tried_version >= self._book.version:
                    self.poked.clear()
                    await self.poked.wait()

    async def _send(self, client: httpx.AsyncClient) -> bool:
        version = self._book.version
        outcome = "unreachable"
        try:
            token = self._settings.token_file.read_text().strip()
            response = await client.post(
                self._url,
                content=self._body(headers := {"host": self._netloc, "authorization": f"Bearer {token}"}),
                headers=headers,
                extensions={"sni_hostname": self._host},
            )
            good = response.status_code in {HTTPStatus.OK, HTTPStatus.NO_CONTENT}
            outcome = "accepted" if good else str(response.status_code)
        except (OSError, UnicodeDecodeError):
            outcome = "no token"
        except httpx.HTTPError:
            outcome = "unreachable"
        self._metrics.sends.labels(outcome).inc()
        self.tried_version = version
        self._tried.set()
        return outcome == "accepted"

    def _body(self, headers: dict[str, str]) -> bytes:
        sample = self._book.sample(self._clock.monotonic_ns(), self._clock.wall_ns())
        body = self._encoder.encode(sample)
        headers["content-type"] = "application/msgpack"
        if len(body) > self._settings.compress_above:
            headers["content-encoding"] = "gzip"
            return gzip.compress(body, compresslevel=1)
        return body
