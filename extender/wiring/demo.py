"""The demo: the service on the bundled fleet, and a small scheduler that asks it over HTTP."""

from __future__ import annotations

from importlib.resources import as_file, files

import httpx

from extender.settings import Settings
from extender.sim.demo import Scene, play
from extender.sim.manifests import load
from extender.sim.memory import MemoryApi
from extender.sim.scheduler import Placement, SmallScheduler
from extender.wiring.core import Core
from extender.wiring.service import Loaded, serve_embedded

TIMEOUT_SECONDS = 10.0


def bundled_fleet() -> Loaded:
    """The fleet that comes with the package."""
    with as_file(files("extender.sim.fleets")) as folder:
        return load(folder).objects


async def play_demo(settings: Settings, version: str) -> list[tuple[Scene, Placement]]:
    """Serve the bundled fleet, play the workload through the socket, stop; what became of each pod."""
    played: list[tuple[Scene, Placement]] = []

    async def started(url: str, core: Core, api: MemoryApi) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_SECONDS) as http:
            scheduler = SmallScheduler(api, http, core.selectors, core.features)
            async for scene, placement in play(api, scheduler):
                played.append((scene, placement))

    await serve_embedded(settings, version, bundled_fleet(), started)
    return played
