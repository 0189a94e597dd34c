"""One bounded GET."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import httpx


@dataclass(frozen=True, slots=True)
class Answer:
    """A body and what came with it."""

    body: bytes
    headers: Mapping[str, str]


class FetchError(Exception):
    """No usable answer; `why` is one word or status for a metric."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


async def fetch(
    client: httpx.AsyncClient,
    url: str,
    timeout_s: float,
    most_bytes: int,
    *,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """GET within a time and a size. Raises FetchError."""
    parts: list[bytes] = []
    length = 0
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.stream("GET", url, params=params, headers=headers) as response,
        ):
            if response.status_code != HTTPStatus.OK:
                raise FetchError(str(response.status_code))
            async for part in response.aiter_bytes():
                length += len(part)
                if length > most_bytes:
                    raise FetchError("too long")
                parts.append(part)
            return Answer(b"".join(parts), response.headers)
    except TimeoutError as fault:
        raise FetchError("timeout") from fault
    except httpx.TimeoutException as fault:
        raise FetchError("timeout") from fault
    except (httpx.HTTPError, httpx.InvalidURL) as fault:
        raise FetchError("unreachable") from fault
