"""Request bodies, bounded before they are read and again while they are inflated."""

from __future__ import annotations

import zlib
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect, Request

_GZIP: Final = 16 + zlib.MAX_WBITS


class BodyRefused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """What to answer instead of reading on."""

    def __init__(self, status: HTTPStatus, why: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.why = why


async def read_bounded(request: Request, limit: int) -> bytes:
    """The body as sent, at most `limit` bytes of it. Raises BodyRefused."""
    declared = request.headers.get("content-length", "0")
    too_long = BodyRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "size", f"body: more than {limit} bytes")
    if not declared.isdigit() or int(declared) > limit:
        raise too_long
    parts: list[bytes] = []
    length = 0
    try:
        async for part in request.stream():
            length += len(part)
            if length > limit:
                raise too_long
            parts.append(part)
    except ClientDisconnect as gone:
        raise BodyRefused(HTTPStatus.BAD_REQUEST, "cut", "body: cut off") from gone
    return b"".join(parts)


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """The body behind its content encoding, none or gzip; never more than `limit`. Raises BodyRefused."""
    if encoding in {"", "identity"}:
        return body
    if encoding != "gzip":
        text = f"content-encoding: {encoding[:40]!r} is not gzip"
        raise BodyRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "encoding", text)
    inflater = zlib.decompressobj(_GZIP)
    try:
        plain = inflater.decompress(body, limit)
    except zlib.error as fault:
        raise BodyRefused(HTTPStatus.BAD_REQUEST, "encoding", f"body: {fault}") from fault
    if inflater.unconsumed_tail:
        raise BodyRefused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "size", f"body: inflates to more than {limit} bytes"
        )
    if not inflater.eof:
        raise BodyRefused(HTTPStatus.BAD_REQUEST, "encoding", "body: gzip ends too early")
    return plain
