"""Which optional kinds the API server serves, and in which version.

Asked at the start, again whenever a CustomResourceDefinition changes (where we may watch them), and at an
interval in any case: built-in kinds come and go with upgrades of the API server.

Owns: the answer and when to ask. Never: starts anything; whoever listens does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import structlog

from extender.api.base import Wire
from extender.kube.client import ApiClient
from extender.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind, KubernetesObject
from extender.kube.pace import Backoff, Pace
from extender.kube.reflector import Reflector, ReflectorOptions
from extender.kube.undecodable import DECODE_ERRORS
from extender.model.errors import KubeError, NotFound
from extender.verbs.ports import Undecodable

Served = Mapping[str, str]
"""Version by name of the kind."""


class _Resource(Wire, frozen=True, gc=False):
    """One resource of a group version; subresources have a slash in their name."""

    name: str = ""
    kind: str = ""


class _ResourceList(Wire, frozen=True, gc=False):
    """The answer of /apis/GROUP/VERSION."""

    resources: list[_Resource] | None = None


_decode = msgspec.json.Decoder(_ResourceList).decode


@dataclass(frozen=True, slots=True)
class DiscoveryTimes:
    """Seconds: the longest time between two questions, and how long a burst of CRD changes may settle."""

    interval: float = 300.0
    settle: float = 1.0


class Discovery:
    """Asks which of `kinds` are served.

    Args:
        client: the API server.
        kinds: optional kinds, each with the versions that we can read.
        pace: clocks, sleep, dice.
        times: when to ask again.
        options: of the watch of CustomResourceDefinitions.
    """

    def __init__(
        self,
        client: ApiClient,
        kinds: Sequence[Kind[KubernetesObject]],
        *,
        pace: Pace,
        times: DiscoveryTimes | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        self._client = client
        self._kinds = tuple(kinds)
        self._pace = pace
        self._times = times or DiscoveryTimes()
        self._options = options
        self._changed = asyncio.Event()
        self._log = structlog.get_logger(room="kube")

    async def served(self) -> dict[str, str]:
        """The preferred version of each kind that is served and that we may list.

        Raises:
            KubeError: the API server did not answer; what is served is not known then.
        """
        by_version: dict[tuple[str, str], frozenset[str]] = {}
        found: dict[str, str] = {}
        for kind in self._kinds:
            for version in kind.versions:
                key = (kind.group, version)
                if key not in by_version:
                    by_version[key] = await self._resources(*key)
                if kind.resource in by_version[key]:
                    if await self._may_list(kind, version):
                        found[kind.name] = version
                    break
        return found

    async def run(self, listener: Callable[[Served], None]) -> None:
        """Tell `listener` what is served, at once and after each change; until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_definitions())
            backoff = Backoff(self._pace.chance)
            last: Served | None = None
            while True:
                self._changed.clear()
                try:
                    now = await self.served()
                except KubeError as error:
                    self._log.warning("discovery failed", error=str(error))
                    await self._pace.sleep(backoff.next(error.retry_after))
                    continue
                backoff.reset()
                if now != last:
                    self._log.info("optional kinds", served=now)
                    listener(now)
                    last = now
                await self._until_due()

    async def _until_due(self) -> None:
        sleep = asyncio.ensure_future(self._nap(self._times.interval))
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({sleep, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            changed.cancel()
            await asyncio.gather(sleep, changed, return_exceptions=True)
        if self._changed.is_set():
            await self._pace.sleep(self._times.settle)

    async def _nap(self, seconds: float) -> None:
        await self._pace.sleep(seconds)

    async def _resources(self, group: str, version: str) -> frozenset[str]:
        path = f"/apis/{group}/{version}"
        try:
            answer = _decode(await self._client.get(path))
        except NotFound:
            return frozenset()
        except DECODE_ERRORS as error:
            raise KubeError(f"GET {path}: no resource list: {error}") from error
        return frozenset(resource.name for resource in answer.resources or ())

    async def _may_list(self, kind: Kind[KubernetesObject], version: str) -> bool:
        try:
            await self._client.get(kind.path(version), {"limit": 1})
        except NotFound:
            return False
        except KubeError as error:
            if error.status not in {401, 403}:
                raise
            self._log.warning("served, but we may not list it", kind=kind.name, error=str(error))
            return False
        return True

    async def _watch_definitions(self) -> None:
        kind = CUSTOM_RESOURCE_DEFINITION
        if not await self._definitions_open():
            return
        reflector = Reflector(
            self._client, kind, kind.versions[0], _Bell(self._changed), pace=self._pace, options=self._options
        )
        await reflector.run()

    async def _definitions_open(self) -> bool:
        """Whether CRDs can be watched; asked until the API server answers."""
        backoff = Backoff(self._pace.chance)
        while True:
            try:
                return await self._may_list(
                    CUSTOM_RESOURCE_DEFINITION, CUSTOM_RESOURCE_DEFINITION.versions[0]
                )
            except KubeError as error:
                await self._pace.sleep(backoff.next(error.retry_after))


class _Bell:
    """An `ObjectSink` that only says that something changed."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self._first = True

    def replaced(self, _kind: str, _objects: Iterable[object], _undecodable: Iterable[Undecodable]) -> None:
        if self._first:
            self._first = False  # the start; the question has just been asked
            return
        self._changed.set()

    def upserted(self, _kind: str, _obj: object) -> None:
        self._changed.set()

    def deleted(self, _kind: str, _obj: object) -> None:
        self._changed.set()

    def undecodable(self, _kind: str, _what: Undecodable) -> None:
        self._changed.set()
