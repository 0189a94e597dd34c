"""All reflectors of the process: the required kinds always, the optional ones while they are served.

Owns: their life, and whether everything is synced. Never: objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from extender.kube.client import ApiClient
from extender.kube.discovery import Discovery, DiscoveryTimes, Served
from extender.kube.kinds import OPTIONAL, REQUIRED, Kind, KubernetesObject
from extender.kube.pace import Pace
from extender.kube.reflector import Reflector, ReflectorOptions, ReflectorStats
from extender.verbs.ports import ObjectSink


class Letterbox:
    """Feeds one sink with everything that Berth watches. `run` until cancelled.

    Args:
        client: the API server.
        sink: is told everything, on the event loop.
        pace: clocks, sleep, dice.
        options: of each reflector.
        times: of discovery.
        required: kinds that every cluster serves.
        optional: kinds that are watched while served.
    """

    def __init__(
        self,
        client: ApiClient,
        sink: ObjectSink,
        *,
        pace: Pace,
        options: ReflectorOptions | None = None,
        times: DiscoveryTimes | None = None,
        required: Sequence[Kind[KubernetesObject]] = REQUIRED,
        optional: Sequence[Kind[KubernetesObject]] = OPTIONAL,
    ) -> None:
        self._client = client
        self._sink = sink
        self._pace = pace
        self._options = options
        self._optional = {kind.name: kind for kind in optional}
        self._discovery = Discovery(client, optional, pace=pace, times=times, options=options)
        self._discovered = asyncio.Event()
        self._served: Served = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._faults: asyncio.Queue[BaseException] = asyncio.Queue()
        self._reflectors = {kind.name: self._make(kind, kind.versions[0]) for kind in required}
        self._log = structlog.get_logger(room="kube")

    @property
    def synced(self) -> bool:
        """Whether discovery has answered and every kind that is watched has been listed once."""
        return self._discovered.is_set() and all(each.synced.is_set() for each in self._reflectors.values())

    @property
    def served(self) -> Served:
        """Version by name of each optional kind that is watched."""
        return self._served

    @property
    def stats(self) -> Mapping[str, ReflectorStats]:
        """Counters of each reflector that runs, by kind."""
        return {name: each.stats for name, each in self._reflectors.items()}

    def synced_kinds(self) -> Mapping[str, bool]:
        """Whether each kind that is watched has been listed once."""
        return {name: each.synced.is_set() for name, each in self._reflectors.items()}

    async def wait_synced(self) -> None:
        """Return once `synced`."""
        await self._discovered.wait()
        while not self.synced:
            await asyncio.gather(*(each.synced.wait() for each in list(self._reflectors.values())))

    async def resync(self) -> None:
        """List everything anew, and return when the sink has it: for a new leader in its term."""
        await self._discovered.wait()
        async with asyncio.TaskGroup() as group:
            for name, reflector in list(self._reflectors.items()):
                group.create_task(self._resync(name, reflector))

    async def run(self) -> None:
        """Watch until cancelled. An exception of the sink or of ours ends it: the process should end too."""
        for name, reflector in self._reflectors.items():
            self._start(name, reflector)
        discovery = asyncio.create_task(self._discovery.run(self._on_served))
        discovery.add_done_callback(self._note_end)
        try:
            raise await self._faults.get()
        finally:
            tasks = [discovery, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._tasks.clear()

    async def _resync(self, name: str, reflector: Reflector[KubernetesObject]) -> None:
        """As the reflector's own, but an optional kind may stop being served meanwhile."""
        listed = asyncio.ensure_future(reflector.resync())
        task = self._tasks.get(name)
        try:
            await asyncio.wait({listed} | ({task} if task else set()), return_when=asyncio.FIRST_COMPLETED)
        finally:
            listed.cancel()
            await asyncio.gather(listed, return_exceptions=True)

    def _make(self, kind: Kind[KubernetesObject], version: str) -> Reflector[KubernetesObject]:
        return Reflector(self._client, kind, version, self._sink, pace=self._pace, options=self._options)

    def _start(self, name: str, reflector: Reflector[KubernetesObject]) -> None:
        task = asyncio.create_task(reflector.run(), name=f"reflector {name}")
        task.add_done_callback(self._note_end)
        self._tasks[name] = task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._faults.put_nowait(fault)

    def _on_served(self, served: Served) -> None:
        for name in set(self._served) - set(served) | {n for n in served if served[n] != self._served.get(n)}:
            self._stop(name)
        for name, version in served.items():
            if name not in self._reflectors:
                self._reflectors[name] = self._make(self._optional[name], version)
                self._start(name, self._reflectors[name])
        self._served = dict(served)
        self._discovered.set()

    def _stop(self, name: str) -> None:
        """The kind, or that version of it, is not served any more."""
        if self._reflectors.pop(name, None) is None:
            return
        task = self._tasks.pop(name)
        task.cancel()
        task.add_done_callback(lambda _: self._forget(name))

    def _forget(self, name: str) -> None:
        """Drop what a kind held once its reflector has said its last; a new version lists all again."""
        if name not in self._reflectors:
            self._sink.replaced(name, (), ())
