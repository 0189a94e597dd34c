"""A request and its reply on bare ASGI, and the way to them past the app.

kube-scheduler's calls go around the app's layers and without its Request and Response: of the CPU of filter +
prioritize on 500 nodes each of the two is about a tenth (docs/adr/0012).
Never: what a reply says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in one piece; `close` ends the connection behind it."""

    body: bytes
    status: int = 200
    media_type: bytes = JSON
    close: bool = False


Handler = Callable[[Receive], Awaitable[Reply]]
"""Reads the request and makes the reply, and raises nothing."""


class Endpoint:
    """A handler as an ASGI app."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        reply = await self._handler(receive)
        headers = [(b"content-length", b"%d" % len(reply.body)), (b"content-type", reply.media_type)]
        if reply.close:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})


class Shortcut:
    """ASGI middleware: a POST to one of `endpoints`' paths is answered there, everything else by `app`."""

    def __init__(self, app: ASGIApp, endpoints: Mapping[str, ASGIApp]) -> None:
        self._app = app
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, by its path."""
        if scope["type"] == "http" and scope["method"] == "POST":
            await self._endpoints.get(scope["path"], self._app)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def read(receive: Receive) -> bytes:
    """The whole body. Raises ClientDisconnect when the client hangs up before its end."""
    chunks = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)
