"""Bytes to and from the API server: the official async client's transport, our own decoding.

Owns: requests, time-outs, the mapping of failures onto `extender.model.errors`. Never: models of objects,
retries (callers know what may be repeated), tokens in logs or error texts.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from extender.api.watch import RawList, StatusObject
from extender.kube.credentials import authorization
from extender.kube.pace import Breather
from extender.model.errors import Conflict, Gone, KubeError, NotFound

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

Params = Mapping[str, str | int]

PAGE_LIMIT = 250
"""Items a page: decoding 250 slices takes some 20 ms, which is split up by the reader."""

MAX_LINE = 64 * 1024 * 1024
"""Bytes of a watch line that we hold; objects are at most 1.5 MiB in etcd, so more is a fault."""

REQUEST_SECONDS = 30.0
"""For a request whose caller names no time: pages are small, and who asks tries again."""

_CONNECT_SECONDS = 10.0
_TLS_FAREWELL_SECONDS = 0.1
_TEXT_LIMIT = 512

_decode_status = msgspec.json.Decoder(StatusObject).decode
_decode_page = msgspec.json.Decoder(RawList).decode


class ApiClient:
    """One API server, spoken to in bytes. Close it, or use it as an async context manager.

    Args:
        configuration: from `extender.kube.credentials.load`.
        user_agent: what the audit log shows.
        within: seconds for a request that names no time of its own; streams have theirs.

    Raises:
        KubeError: the configuration's TLS files can't be used.
    """

    def __init__(
        self, configuration: Configuration, *, user_agent: str = "berth", within: float = REQUEST_SECONDS
    ) -> None:
        self._configuration = configuration
        self._within = within
        self._host = configuration.host.rstrip("/")
        self._user_agent = user_agent
        try:
            self._rest: Any = RESTClientObject(configuration)
        except (OSError, ssl.SSLError) as error:
            raise KubeError(f"the TLS files for {self._host} can't be used: {error}") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._rest.close()
        if self._host.startswith("https"):
            # Requests that were cancelled have left TLS connections which end in the loop's own time.
            await asyncio.sleep(_TLS_FAREWELL_SECONDS)

    async def get(
        self,
        path: str,
        params: Params | None = None,
        *,
        within: float | None = None,
        accept: str = JSON,
    ) -> bytes:
        """GET one object or page, within so many seconds (without: those of the client).

        Raises:
            KubeError: as `NotFound`, `Gone`, `Conflict` where it is one of these.
        """
        return await self._call("GET", path, params=params, within=within, accept=accept)

    async def post(
        self,
        path: str,
        body: object,
        content_type: str = JSON,
        *,
        params: Params | None = None,
        within: float | None = None,
    ) -> bytes:
        """POST `body` (builtins or a msgspec Struct).

        Raises:
            KubeError: `Conflict` with reason AlreadyExists when there is such an object.
        """
        return await self._call("POST", path, body, content_type, params=params, within=within)

    async def put(
        self, path: str, body: object, content_type: str = JSON, *, within: float | None = None
    ) -> bytes:
        """PUT `body`.

        Raises:
            KubeError: `Conflict` when somebody wrote after the metadata.resourceVersion in it.
        """
        return await self._call("PUT", path, body, content_type, within=within)

    async def patch(
        self, path: str, body: object, content_type: str = MERGE_PATCH, *, within: float | None = None
    ) -> bytes:
        """PATCH with a merge patch unless `content_type` says otherwise. Raises `KubeError`."""
        return await self._call("PATCH", path, body, content_type, within=within)

    async def delete(
        self, path: str, body: object = None, content_type: str = JSON, *, within: float | None = None
    ) -> bytes:
        """DELETE; `body` is DeleteOptions.

        Raises:
            KubeError: `Conflict` when its preconditions do not hold, `NotFound` when there is no such object.
        """
        return await self._call("DELETE", path, body, content_type, within=within)

    async def pages(
        self, path: str, params: Params | None = None, *, limit: int = PAGE_LIMIT
    ) -> AsyncGenerator[RawList, None]:
        """All pages of a consistent list; every page has the list's resourceVersion.

        Raises:
            Gone: the continue token expired; start anew.
            KubeError: any other failure, a page that is no list among them.
        """
        query: dict[str, str | int] = {**(params or {}), "limit": limit}
        while True:
            body = await self.get(path, query)
            try:
                page = _decode_page(body)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise KubeError(f"GET {path}: not a list: {error}") from error
            yield page
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def stream(
        self, path: str, params: Params | None = None, *, inactivity: float
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, complete ones only; ends when the server ends it.

        Gives way to the rest of the loop between lines when many have come at once.

        Args:
            path: the collection.
            params: query; `watch=1` is added.
            inactivity: seconds without a byte after which the stream counts as dead.

        Raises:
            KubeError: status 0 when the connection broke or fell silent.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=inactivity)
        query = {**(params or {}), "watch": "1"}
        async with self._response(
            "GET", path, None, JSON, params=query, limits=limits, accept=JSON
        ) as response:
            held: list[bytes] = []
            size = 0
            content = response.content
            breather = Breather(asyncio.get_running_loop().time)
            with _transport_errors("GET", path):
                while chunk := await content.readany():
                    *lines, rest = chunk.split(b"\n")
                    if lines and held:
                        lines[0] = b"".join((*held, lines[0]))
                        held.clear()
                        size = 0
                    breather.start()
                    for line in lines:
                        if line:
                            yield line
                        if breather.spent():
                            await breather.breathe()
                    if rest:
                        held.append(rest)
                        size += len(rest)
                        if size > MAX_LINE:
                            raise KubeError(f"GET {path}: a watch line of more than {MAX_LINE} bytes")

    async def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = JSON,
        *,
        params: Params | None = None,
        within: float | None,
        accept: str = JSON,
    ) -> bytes:
        total = self._within if within is None else within
        limits = aiohttp.ClientTimeout(total=total, sock_connect=min(total, _CONNECT_SECONDS))
        async with self._response(
            method, path, body, content_type, params=params, limits=limits, accept=accept
        ) as response:
            with _transport_errors(method, path):
                return await response.read()

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        body: object,
        content_type: str,
        *,
        params: Params | None,
        limits: aiohttp.ClientTimeout,
        accept: str,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer with status 2xx whose body is still to be read. Raises `KubeError` for all others."""
        headers = {
            "Accept": accept,
            # Packing and unpacking costs both ends more than a cluster network does.
            "Accept-Encoding": "identity",
            "Content-Type": content_type,
            "User-Agent": self._user_agent,
        }
        token = await authorization(self._configuration)
        if token is not None:
            headers["Authorization"] = token
        url = f"{self._host}{path}?{urlencode(params)}" if params else self._host + path
        payload: Any = None if body is None else msgspec.to_builtins(body)
        with _transport_errors(method, path):
            answer = await self._rest.request(
                method, url, headers=headers, body=payload, _request_timeout=limits
            )
        response: aiohttp.ClientResponse = answer.response
        whole = False
        try:
            if response.status >= 300:
                with _transport_errors(method, path):
                    text = await response.read()
                whole = True
                raise failure(f"{method} {path}", response.status, text, response.headers.get("Retry-After"))
            yield response
            whole = response.content.at_eof()
        finally:
            # A half-read body can't be reused: give such a connection up, at once (a TLS farewell to a server
            # that may be gone would outlive us).
            connection = response.connection
            transport = connection.transport if connection is not None else None
            if whole:
                response.release()
            else:
                response.close()
                if transport is not None:
                    transport.abort()


class _transport_errors:  # noqa: N801 - used like a keyword: `with _transport_errors(...)`
    """Turns the transport's exceptions into `KubeError` with status 0."""

    def __init__(self, method: str, path: str) -> None:
        self._what = f"{method} {path}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None or isinstance(error, KubeError):
            return
        if isinstance(error, aiohttp.ClientError | asyncio.TimeoutError | OSError | ValueError):
            # Not the error's own text alone: a time-out has none, and aiohttp names host and port itself.
            name = type(error).__name__
            detail = "" if isinstance(error, ValueError) else f": {error}"
            raise KubeError(f"{self._what}: no answer ({name}{detail})") from error


def failure(what: str, status: int, body: bytes, retry_after: str | None = None) -> KubeError:
    """The exception for a failed answer; its text is the API server's message, shortened.

    Args:
        what: method and path.
        status: the HTTP status, or `code` of an ERROR event.
        body: a metav1.Status, or whatever came instead.
        retry_after: the header, in seconds.
    """
    try:
        said = _decode_status(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        said = StatusObject(message=body[:_TEXT_LIMIT].decode("utf-8", "replace"))
    text = f"{what}: {status} {said.reason}: {said.message[:_TEXT_LIMIT]}"
    wait = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    kinds: dict[int, type[KubeError]] = {404: NotFound, 409: Conflict, 410: Gone}
    return kinds.get(status, KubeError)(text, status, reason=said.reason, retry_after=wait)


def is_another_object(error: KubeError) -> bool:
    """Whether a patch that carried metadata.uid met no such object, or a newer one of the same name.

    The API server tells the latter as 422 ("metadata.uid: field is immutable"), where it has no other fault.
    """
    return error.status in {404, 409} or (error.status == 422 and "metadata.uid" in str(error))
