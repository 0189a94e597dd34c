"""The app: probes, metrics, the read API with its documentation, routes of other rooms, and the hot paths.

Never: a module-level app; `build_app` makes one from what it is handed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from extender.server import faults
from extender.server.api import read_router
from extender.server.auth import Door, guard
from extender.server.certificates import ClientCertificates
from extender.server.limits import BodyLimit
from extender.server.probes import probe_routes
from extender.server.raw import Shortcut
from extender.verbs.ports import ReadDesk

DESCRIPTION = (
    "Berth answers kube-scheduler's filter, prioritize, bind and preempt calls. This API is read-only."
)


@dataclass(frozen=True, slots=True)
class Deps:
    """What the app is made of.

    `waiting` names what is not synced yet (empty: ready). `hot` answers POSTs by path, before anything else
    looks at them; `routes` are those of other rooms. `door` guards `/api`, None leaves it open. With
    `client_certificates`, `/extender` answers only clients that have shown one.
    """

    desk: ReadDesk
    waiting: Callable[[], Sequence[str]]
    registry: CollectorRegistry
    version: str
    body_limit: int
    door: Door | None = None
    client_certificates: bool = False
    hot: Mapping[str, ASGIApp] = field(default_factory=dict)
    routes: Sequence[BaseRoute] = ()


def build_app(deps: Deps) -> ASGIApp:
    """Make the app.

    From the outside: who may not speak is not read; what is too large is not read to its end; the hot paths;
    FastAPI for the rest, where the hot paths are known too, so that another method is answered with 405.
    """
    app: ASGIApp = BodyLimit(Shortcut(_fastapi(deps), deps.hot), deps.body_limit)
    return ClientCertificates(app, prefix="/extender") if deps.client_certificates else app


def _fastapi(deps: Deps) -> FastAPI:
    app = FastAPI(
        title="Berth",
        version=deps.version,
        description=DESCRIPTION,
        docs_url="/docs",
        redoc_url=None,
        redirect_slashes=False,
    )
    faults.register(app)
    app.include_router(read_router(deps.desk, guard(deps.door) if deps.door is not None else None))
    hot = [Route(path, endpoint, methods=["POST"]) for path, endpoint in deps.hot.items()]
    app.router.routes[:0] = [*hot, *deps.routes, *probe_routes(deps.waiting, deps.registry)]
    return app
