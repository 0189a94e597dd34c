"""A replica of the service: core, source, HTTP server and background tasks, from start to stop."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from starlette.routing import BaseRoute

from extender.kube.client import ApiClient
from extender.kube.kinds import REQUIRED
from extender.kube.review import Reviewer
from extender.model.errors import SettingsError
from extender.observability.loop import watch_lag
from extender.observability.readings import InventoryCollector, InventoryReading, ReflectorCollector
from extender.server.app import Deps, build_app
from extender.server.auth import Door
from extender.server.serve import HttpServer, freeze_after
from extender.settings import Settings
from extender.sim.manifests import load as load_manifests
from extender.sim.memory import MemoryApi
from extender.verbs.fleet import device_states
from extender.wiring.core import Core, build_core, reader, verb_routes
from extender.wiring.source import Always, Shadow, connect, credentials

Loaded = Mapping[str, Sequence[Any]]
"""Objects by kind: the fleet of an embedded source."""


async def serve_cluster(settings: Settings, environ: Mapping[str, str], version: str) -> None:
    """Serve from an API server until SIGTERM.

    Raises:
        SettingsError: something configured can't be used.
        KubeError: there are no usable credentials.
    """
    core = build_core(settings, version)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(ApiClient(await credentials(settings), user_agent="berth"))
        source = connect(core, client, environ)
        core.registry.register(ReflectorCollector(lambda: source.letterbox.stats, time.monotonic))
        core.registry.register(InventoryCollector(lambda: _reading(core, source.letterbox.synced_kinds())))
        reviewer = Reviewer(client, clock=time.monotonic)
        door = (
            Door(reviewer, reviewer, settings.api.audience, loopback=settings.server.is_loopback())
            if settings.api.auth
            else None
        )
        deps = Deps(
            desk=reader(core, source),
            waiting=source.waiting,
            registry=core.registry,
            version=version,
            body_limit=settings.server.body_limit_bytes,
            door=door,
            client_certificates=_wants_certificates(settings),
            routes=verb_routes(core, source, source, source.binder),
        )
        server = HttpServer(build_app(deps), settings.server)
        synced = asyncio.Event()

        async def note_sync() -> None:
            await source.letterbox.wait_synced()
            synced.set()

        await _until_stopped(server, core, [source.run, note_sync, lambda: freeze_after(synced)])


async def serve_embedded(
    settings: Settings,
    version: str,
    fleet: Loaded | None = None,
    started: Callable[[str, Core, MemoryApi], Awaitable[None]] | None = None,
) -> None:
    """Serve a fleet in memory until SIGTERM, or until `started` (told the URL) returns.

    Raises SettingsError when the fleet can't be read.
    """
    core = build_core(settings, version)
    api = MemoryApi(core.ledger)
    api.load(fleet if fleet is not None else _fleet(settings), [kind.name for kind in REQUIRED])
    switch = Shadow(settings)
    core.registry.register(InventoryCollector(lambda: _reading(core, {})))
    routes: list[BaseRoute] = verb_routes(core, Always(), switch, api)
    deps = Deps(
        desk=reader(core, switch),
        waiting=list,
        registry=core.registry,
        version=version,
        body_limit=settings.server.body_limit_bytes,
        client_certificates=_wants_certificates(settings),
        routes=routes,
    )
    server = HttpServer(build_app(deps), settings.server)
    synced = asyncio.Event()
    synced.set()
    tasks: list[Callable[[], Awaitable[None]]] = [lambda: freeze_after(synced)]
    if started is not None:
        play = started

        async def run_started() -> None:
            await listening.wait()
            try:
                await play(server.url, core, api)
            finally:
                server.stop()

        tasks.append(run_started)
    listening = asyncio.Event()
    await _until_stopped(server, core, tasks, listening)


async def _until_stopped(
    server: HttpServer,
    core: Core,
    tasks: Sequence[Callable[[], Awaitable[None]]],
    listening: asyncio.Event | None = None,
) -> None:
    """Run the server, and the tasks beside it; a task that fails ends everything."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(_awaited(task)) for task in tasks]
        running.append(group.create_task(watch_lag(core.metrics.loop_lag.observe, time.monotonic)))
        try:
            await server.run(listening.set if listening is not None else None)
        finally:
            for task in running:
                task.cancel()


async def _awaited(task: Callable[[], Awaitable[None]]) -> None:
    await task()


def _fleet(settings: Settings) -> Loaded:
    if settings.kube.fleet_path is None:
        raise SettingsError("kube.fleetPath: source `embedded` needs a folder of Kubernetes YAML")
    return load_manifests(settings.kube.fleet_path).objects


def _wants_certificates(settings: Settings) -> bool:
    return settings.server.tls is not None and settings.server.tls.client_ca_file is not None


def _reading(core: Core, synced: Mapping[str, bool]) -> InventoryReading:
    return InventoryReading(
        objects=core.ledger.counts(),
        devices=Counter(device_states(core.ledger.snapshot())),
        synced=synced,
        undecodable=dict(core.ledger.unreadable),
        in_flight=len(core.ledger.in_flight),
    )
