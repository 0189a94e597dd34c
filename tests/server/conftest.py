"""Apps, served for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import httpx
import pytest
from prometheus_client import CollectorRegistry, Gauge
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from extender.server.app import Deps, build_app
from extender.server.auth import Door
from extender.settings import ServerSettings
from tests.server.desk import Desk, Reviewer
from tests.server.running import running
from tests.server.service import Service, gpu_fleet

LIMIT = 100_000


async def echo_length(request: Request) -> Response:
    """A verb of kube-scheduler, as far as bodies go."""
    return PlainTextResponse(str(len(await request.body())))


async def broken(_request: Request) -> Response:
    raise ValueError("secret of the house")


def make_app(
    *,
    door: Door | None = None,
    waiting: Callable[[], Sequence[str]] = list,
    client_certificates: bool = False,
    desk: Desk | None = None,
) -> ASGIApp:
    registry = CollectorRegistry()
    Gauge("berth_test", "A metric.", registry=registry).set(1)
    return build_app(
        Deps(
            desk=desk or Desk(),
            waiting=waiting,
            registry=registry,
            version="1.2.3",
            body_limit=LIMIT,
            door=door,
            client_certificates=client_certificates,
            routes=[
                Route("/extender/filter", echo_length, methods=["POST"]),
                Route("/extender/broken", broken, methods=["POST"]),
            ],
        )
    )


Client = Callable[..., httpx.Client]


@pytest.fixture
def connect() -> Iterator[Client]:
    """Serve an app and give a client of it."""
    with ExitStack() as stack:

        def connected(app: ASGIApp, settings: ServerSettings | None = None) -> httpx.Client:
            server = stack.enter_context(running(app, settings))
            return stack.enter_context(httpx.Client(base_url=server.url, trust_env=False, timeout=20))

        yield connected


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of an app whose API is open."""
    with (
        running(make_app()) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=20) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def reviewer() -> Reviewer:
    return Reviewer()


@pytest.fixture
def service() -> Service:
    """The verbs over a small fleet of GPU nodes."""
    made = Service()
    gpu_fleet(made)
    return made


@pytest.fixture
def caller(service: Service) -> Iterator[httpx.Client]:
    """A client that asks the verbs of `service`, as kube-scheduler does."""
    with (
        running(service.app()) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=20) as connected,
    ):
        yield connected
