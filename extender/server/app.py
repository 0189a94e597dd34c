"""The app: probes, metrics, the read API with its documentation, and the routes of other rooms in front.

Never: a module-level app; `build_app` makes one from what it is handed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute

from extender.server import faults
from extender.server.api import read_router
from extender.server.auth import Door, guard
from extender.server.certificates import ClientCertificates
from extender.server.limits import BodyLimit
from extender.server.probes import probe_routes
from extender.verbs.ports import ReadDesk

DESCRIPTION = (
    "Berth answers kube-scheduler's filter, prioritize, bind and preempt calls. This API is read-only."
)


@dataclass(frozen=True, slots=True)
class Deps:
    """What the app is made of.

    `waiting` names what is not synced yet (empty: ready). `routes` are the hot verb routes and those of other
    rooms; they are matched first. `door` guards `/api`, None leaves it open. With `client_certificates`,
    `/extender` answers only clients that have shown one.
    """

    desk: ReadDesk
    waiting: Callable[[], Sequence[str]]
    registry: CollectorRegistry
    version: str
    body_limit: int
    door: Door | None = None
    client_certificates: bool = False
    routes: Sequence[BaseRoute] = ()


def build_app(deps: Deps) -> FastAPI:
    """Make the app."""
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
    app.router.routes[:0] = [*deps.routes, *probe_routes(deps.waiting, deps.registry)]
    # The last one added is the outermost: who may not speak is not read either.
    app.add_middleware(BodyLimit, limit=deps.body_limit)
    if deps.client_certificates:
        app.add_middleware(ClientCertificates, prefix="/extender")
    return app
