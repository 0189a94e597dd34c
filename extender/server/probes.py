"""Probes and metrics: `/livez`, `/readyz`, `/metrics`.

Never: a judgement of its own; ready is what the caller says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route


def probe_routes(waiting: Callable[[], Sequence[str]], registry: CollectorRegistry) -> list[Route]:
    """The routes; `waiting` names what is not synced yet, and an empty answer means ready."""

    async def livez(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(_request: Request) -> Response:
        left = list(waiting())
        status = HTTPStatus.SERVICE_UNAVAILABLE if left else HTTPStatus.OK
        return JSONResponse({"ready": not left, "waiting": left}, status)

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return [Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics)]
