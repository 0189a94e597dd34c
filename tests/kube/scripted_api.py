"""A small HTTP server on loopback that plays an API server by script, faults and all."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from kubernetes.aio.client import Configuration


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Reply:
    """What a step answers with: one body, or a stream of chunks."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        extra = "".join(f"{key}: {value}\r\n" for key, value in (headers or {}).items())
        self._writer.write(
            f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n{extra}\r\n".encode()
            + data
        )
        await self._writer.drain()

    async def start(self) -> None:
        self._writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def abort(self) -> None:
        self._writer.transport.abort()


Step = Callable[[Request, Reply], Awaitable[None]]


def answer(status: int, body: object, headers: dict[str, str] | None = None) -> Step:
    async def step(_: Request, reply: Reply) -> None:
        await reply.send(status, body, headers)

    return step


def refuse(status: int, reason: str = "", message: str = "no", headers: dict[str, str] | None = None) -> Step:
    body = {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}
    return answer(status, body, headers)


async def hang_up(_: Request, reply: Reply) -> None:
    reply.abort()


async def never(_: Request, __: Reply) -> None:
    await asyncio.Event().wait()


def line(kind: str, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: str, *, ends_list: bool = False) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if ends_list else {}
    return line("BOOKMARK", {"metadata": {"resourceVersion": version, "annotations": annotations}})


def watch(*chunks: bytes, then: str = "hang") -> Step:
    """A stream of these chunks, after which it hangs, ends or breaks."""

    async def step(_: Request, reply: Reply) -> None:
        await reply.start()
        for chunk in chunks:
            await reply.chunk(chunk)
        if then == "end":
            await reply.end()
        elif then == "break":
            reply.abort()
        else:
            await asyncio.Event().wait()

    return step


class Feed:
    """A watch whose lines the test sends one by one."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, data: bytes) -> None:
        self._chunks.put_nowait(data)

    def end(self) -> None:
        self._chunks.put_nowait(None)

    async def step(self, _: Request, reply: Reply) -> None:
        await reply.start()
        while (data := await self._chunks.get()) is not None:
            await reply.chunk(data)
        await reply.end()


@dataclass
class ScriptedApi:
    """Steps by method and path, one per request; the last one repeats. An unknown path is a 404."""

    requests: list[Request] = field(default_factory=list)
    url: str = ""
    _steps: dict[tuple[str, str], list[Step]] = field(default_factory=lambda: defaultdict(list))
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None
    port: int = 0

    def on(self, method: str, path: str, *steps: Step) -> None:
        self._steps[method, path] = list(steps)

    def seen(self, method: str, path: str) -> list[Request]:
        return [r for r in self.requests if r.method == method and r.path == path]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Close the port and break every connection."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def configuration(self, token: str | None = None) -> Configuration:
        configuration = Configuration(host=self.url)
        configuration.client_session_kwargs = {"trust_env": False}
        if token is not None:
            configuration.api_key["BearerToken"] = f"Bearer {token}"
        return configuration

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read(reader):
                self.requests.append(request)
                steps = self._steps.get((request.method, request.path))
                if not steps:
                    await refuse(404, "NotFound")(request, Reply(writer))
                    continue
                step = steps.pop(0) if len(steps) > 1 else steps[0]
                await step(request, Reply(writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client hung up, as a test has it do
        finally:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = {key.lower(): value for key, _, value in (item.partition(": ") for item in rest if item)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)


class Stored:
    """One object behind its path, with optimistic locking: GET, PUT, and POST of its collection."""

    def __init__(self, api: ScriptedApi, collection: str, name: str) -> None:
        self.object: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.writes: list[dict[str, Any]] = []
        api.on("GET", f"{collection}/{name}", self._get)
        api.on("PUT", f"{collection}/{name}", self._put)
        api.on("POST", collection, self._post)

    def set(self, obj: dict[str, Any]) -> None:
        self.version += 1
        self.object = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}

    async def _get(self, request: Request, reply: Reply) -> None:
        if self.down:
            reply.abort()
        elif self.object is None:
            await refuse(404, "NotFound")(request, reply)
        else:
            await reply.send(200, self.object)

    async def _put(self, request: Request, reply: Reply) -> None:
        if self.down:
            reply.abort()
        elif self.object is None:
            await refuse(404, "NotFound")(request, reply)
        elif request.json["metadata"].get("resourceVersion") != str(self.version):
            await refuse(409, "Conflict")(request, reply)
        else:
            await self._store(request, reply)

    async def _post(self, request: Request, reply: Reply) -> None:
        if self.down:
            reply.abort()
        elif self.object is not None:
            await refuse(409, "AlreadyExists")(request, reply)
        else:
            await self._store(request, reply)

    async def _store(self, request: Request, reply: Reply) -> None:
        self.writes.append(request.json)
        self.set(request.json)
        await reply.send(200, self.object)
