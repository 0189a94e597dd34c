"""The largest body that is read, enforced before a route sees it, by its declared length and by its real one.

Never: the whole of a body that is too large in memory.
"""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extender.server.faults import BodyTooLargeError

DRAIN_SECONDS = 5.0
"""A client that is still sending when we answer sees a broken connection instead of the answer, so what it
sends is read and dropped for this long, and up to four times the limit."""


class BodyLimit:
    """ASGI middleware: reading a body of more than `limit` bytes raises `BodyTooLargeError` in the route.

    Routes of ours are answered with 413 for it; those of kube-scheduler's verbs answer it in their own form.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a `receive` that counts."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self._app(scope, _Counted(receive, Headers(scope=scope), self._limit).receive, send)


class _Counted:
    def __init__(self, receive: Receive, headers: Headers, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._read = 0
        self._more = True
        self._waits = headers.get("expect", "").lower() == "100-continue"
        length = headers.get("content-length", "")
        self._declared = int(length) if length.isdecimal() else 0

    async def receive(self) -> Message:
        if self._declared > self._limit and self._more:
            await self._refuse()
        message = await self._take()
        if self._read > self._limit:
            await self._refuse()
        return message

    async def _take(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        self._more = bool(message.get("more_body", False))
        return message

    async def _refuse(self) -> None:
        # A client that waits for "100 Continue" sends nothing until it is asked to.
        if not self._waits:
            await self._drain()
        raise BodyTooLargeError(f"body: larger than {self._limit} bytes")

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._more and self._read <= 4 * self._limit:
                    await self._take()
        except TimeoutError:
            return
