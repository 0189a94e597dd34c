"""A replica of the service: core, source, HTTP server and background tasks, from start to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from extender.kube.client import ApiClient
from extender.kube.review import Reviewer
from extender.model.errors import SettingsError
from extender.observability.loop import watch_lag
from extender.observability.readings import InventoryCollector, ReflectorCollector
from extender.server.app import Deps, build_app
from extender.server.auth import Door
from extender.server.serve import HttpServer, freeze_after
from extender.settings import Settings
from extender.sim.manifests import load as load_manifests
from extender.sim.memory import MemoryApi
from extender.verbs.ports import ReadDesk
from extender.wiring.core import Core, build_core, reader, verb_endpoints
from extender.wiring.gauges import LedgerGauges
from extender.wiring.policyfile import PolicyFile
from extender.wiring.source import WATCHED, Always, Shadow, api_client, connect
from extender.wiring.tasks import Work, run_beside
from extender.wiring.telemetry import embedded_routes, sample_routes, telemetry_tasks

AGENT_SECONDS = 300.0
MOST_AGENTS = 20_000

Loaded = Mapping[str, Sequence[Any]]
"""Objects by kind: the fleet of an embedded source."""


async def serve_cluster(settings: Settings, environ: Mapping[str, str], version: str) -> None:
    """Serve from an API server until SIGTERM.

    Raises:
        SettingsError: something configured can't be used.
        KubeError: there are no usable credentials.
        Died: a task of ours has failed.
    """
    core = build_core(settings, version)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(await api_client(settings))
        source = connect(core, client, environ)
        core.registry.register(ReflectorCollector(lambda: source.letterbox.stats, time.monotonic))
        door = None
        if settings.api.auth:
            reviewer = Reviewer(client, clock=time.monotonic)
            door = Door(reviewer, reviewer, settings.api.audience, loopback=settings.server.is_loopback())
        server = _server(
            core,
            reader(core, source),
            verb_endpoints(core, source, source, source.binder),
            sample_routes(core.telemetry, settings, _agents_reviewer(client)),
            waiting=source.waiting,
            door=door,
        )
        synced = asyncio.Event()

        async def note_sync() -> None:
            await source.letterbox.wait_synced()
            synced.set()

        tasks = {"cluster": source.run, "sync": note_sync, "freeze": lambda: freeze_after(synced)}
        await run_beside(server, {**tasks, **_housekeeping(core, source.letterbox.synced_kinds)})


async def serve_embedded(
    settings: Settings,
    version: str,
    fleet: Loaded | None = None,
    started: Callable[[str, Core, MemoryApi], Awaitable[None]] | None = None,
) -> None:
    """Serve a fleet in memory until SIGTERM, or until `started` (told the URL) returns.

    Raises:
        SettingsError: the fleet can't be read, or something configured can't be used.
        Died: a task of ours, or `started`, has failed.
    """
    core = build_core(settings, version)
    api = MemoryApi(core.ledger)
    api.load(fleet if fleet is not None else _fleet(settings), WATCHED)
    switch = Shadow(settings)
    hot = verb_endpoints(core, Always(), switch, api)
    routes = embedded_routes(core.telemetry, settings)
    server = _server(core, reader(core, switch), hot, routes, waiting=list)
    synced, listening = asyncio.Event(), asyncio.Event()
    synced.set()
    tasks: dict[str, Work] = {"freeze": lambda: freeze_after(synced)}
    if started is not None:
        play = started

        async def run_started() -> None:
            await listening.wait()
            await play(server.url, core, api)
            server.stop()

        tasks["play"] = run_started
    await run_beside(server, {**tasks, **_housekeeping(core, dict)}, listening)


def _agents_reviewer(client: ApiClient) -> Reviewer:
    """For node agents: as many as a large fleet has, believed for long, or the reviews would be a load.

    5,000 agents make 17 reviews a second; a token that is withdrawn works for so much longer.
    """
    return Reviewer(client, clock=time.monotonic, seconds=AGENT_SECONDS, size=MOST_AGENTS)


def _server(
    core: Core,
    desk: ReadDesk,
    hot: Mapping[str, ASGIApp],
    routes: Sequence[BaseRoute],
    *,
    waiting: Callable[[], Sequence[str]],
    door: Door | None = None,
) -> HttpServer:
    """The listener, bound to its port."""
    settings = core.settings.server
    deps = Deps(
        desk=desk,
        waiting=waiting,
        registry=core.registry,
        version=core.version,
        body_limit=settings.body_limit_bytes,
        door=door,
        client_certificates=settings.tls is not None and settings.tls.client_ca_file is not None,
        hot=hot,
        routes=routes,
    )
    return HttpServer(build_app(deps), settings)


def _housekeeping(core: Core, synced: Callable[[], Mapping[str, bool]]) -> dict[str, Work]:
    """What every replica does beside its source: the policy file, telemetry, the loop's lag, gauges."""
    gauges = LedgerGauges(core.ledger, synced, time.monotonic)
    core.registry.register(InventoryCollector(gauges.read))

    def probed(lag: float) -> None:
        core.metrics.loop_lag.observe(lag)
        gauges.look()

    tasks: dict[str, Work] = {
        **telemetry_tasks(core.telemetry, core.settings, core.ledger),
        "loop lag": lambda: watch_lag(probed, time.monotonic),
    }
    policy = core.settings.policy
    if policy.file is not None:
        tasks["policy file"] = PolicyFile(policy.file, core.desk, policy.reload_seconds).run
    return tasks


def _fleet(settings: Settings) -> Loaded:
    if settings.kube.fleet_path is None:
        raise SettingsError("kube.fleetPath: source `embedded` needs a folder of Kubernetes YAML")
    return load_manifests(settings.kube.fleet_path).objects
