"""A desk over a cluster for the command line: everything is listed once, then nothing is watched."""

from __future__ import annotations

import asyncio
import contextlib

from extender.kube.client import ApiClient
from extender.kube.letterbox import Letterbox
from extender.kube.pace import Pace
from extender.kube.reflector import ReflectorOptions
from extender.model.errors import KubeError
from extender.settings import Settings
from extender.verbs.ports import ReadDesk
from extender.wiring.core import Core, build_core, reader
from extender.wiring.source import Shadow, api_client

PATIENCE_SECONDS = 60.0
"""A large cluster is listed in ten seconds; this is for one that does not answer."""


async def cluster_desk(settings: Settings, version: str) -> ReadDesk:
    """The desk, as the cluster was when it was listed.

    Raises:
        KubeError: There are no usable credentials, or the cluster was not listed in time.
        SettingsError: Something configured can't be used.
    """
    return reader(await cluster_core(settings, version), Shadow(settings))


async def cluster_core(settings: Settings, version: str) -> Core:
    """The core that knows the cluster as it was when it was listed. Raises as `cluster_desk`."""
    core = build_core(settings, version)
    async with await api_client(settings) as client:
        # Reflectors try again for ever; somebody at a terminal wants to hear of missing rights at once.
        await client.get("/api/v1/nodes", params={"limit": 1})
        await _list(core, client)
    return core


async def _list(core: Core, client: ApiClient) -> None:
    options = ReflectorOptions(page_limit=core.settings.kube.page_size)
    letterbox = Letterbox(client, core.ledger, pace=Pace(), options=options)
    running = asyncio.create_task(letterbox.run())
    synced = asyncio.create_task(letterbox.wait_synced())
    try:
        await asyncio.wait({running, synced}, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        if not synced.done():
            waiting = [kind for kind, done in letterbox.synced_kinds().items() if not done]
            why = {stats.last_error for stats in letterbox.stats.values() if stats.last_error}
            raise KubeError(
                f"not listed within {PATIENCE_SECONDS:g} s: {', '.join(waiting) or 'discovery'}; "
                f"{'; '.join(sorted(why))}"
            )
    finally:
        for task in (running, synced):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
