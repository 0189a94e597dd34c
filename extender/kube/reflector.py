"""A reflector: keeps one kind in step with the API server and feeds what it sees to an `ObjectSink`.

    start ──> list ──────────> watch ──server closes in its time──> watch (same version)
               ^  (streamed, or   │
               │   in pages)      ├──connection lost, 429, 5xx──> back off ──> watch (same version)
               └──── back off <───┴──410, anything else

Owns: list, watch, bookmarks, relists, back-off, its own statistics. Never: keeps objects, or knows what the
sink does with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from extender.api.meta import ObjectMeta
from extender.api.watch import WatchEvent
from extender.kube.client import PAGE_LIMIT, ApiClient, failure
from extender.kube.kinds import Kind, KubernetesObject
from extender.kube.pace import Backoff, Breather, Pace
from extender.kube.undecodable import DECODE_ERRORS, UndecodableObject, undecodable
from extender.model.errors import Gone, KubeError, WireError
from extender.verbs.ports import ObjectSink

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends a streamed list (KEP-3157)."""

# Failures after which the watch may go on from the version it had: the server was away, busy, or (just
# started) did not know our rights yet. Everything else means a new list.
_RESUMABLE = frozenset({0, 401, 403, 429, 500, 502, 503})

T = TypeVar("T", bound=KubernetesObject)

_decode_envelope = msgspec.json.Decoder(WatchEvent).decode


@dataclass(frozen=True, slots=True)
class ReflectorOptions:
    """Times of a reflector, in seconds.

    Bookmarks come about every minute, so a stream that is silent for twice as long is a dead one.
    """

    page_limit: int = PAGE_LIMIT
    watch_seconds: int = 300
    """timeoutSeconds of a watch, stretched at random to up to twice this."""
    inactivity: float = 120.0
    backoff_base: float = 0.5
    backoff_ceiling: float = 10.0
    healthy_after: float = 5.0
    """A connection that lived this long makes the next wait short again."""
    shortest_watch: float = 1.0
    """A watch that ends sooner than this is treated as a failure, lest a broken proxy make us spin."""
    streaming: bool = True
    """Try a streamed list first; a server that doesn't serve it is asked for pages from then on."""


@dataclass(slots=True)
class ReflectorStats:
    """Counters since the start; `last_*` on the monotonic clock."""

    connects: int = 0
    """Lists and watches asked for."""
    restarts: int = 0
    """Failures that were followed by a wait."""
    lists: int = 0
    """Full lists delivered."""
    relists_gone: int = 0
    """410 answers."""
    events: int = 0
    undecodable: int = 0
    last_contact: float | None = None
    """When the server last sent anything."""
    last_error: str = ""
    """Text of the fault that we are recovering from; empty when well."""

    def silence(self, now: float) -> float | None:
        """Seconds since the server last said anything (at most a bit over a minute when well)."""
        return None if self.last_contact is None else now - self.last_contact


class Reflector(Generic[T]):
    """One kind, one sink. `run` until cancelled.

    Args:
        client: the API server.
        kind: what to watch.
        version: a served version of the kind.
        sink: is told everything, on the event loop.
        pace: clocks, sleep, dice.
        options: times.
    """

    def __init__(
        self,
        client: ApiClient,
        kind: Kind[T],
        version: str,
        sink: ObjectSink,
        *,
        pace: Pace,
        options: ReflectorOptions | None = None,
    ) -> None:
        self.kind = kind
        self.stats = ReflectorStats()
        self.synced = asyncio.Event()
        self._client = client
        self._path = kind.path(version)
        self._sink = sink
        self._pace = pace
        self._options = options or ReflectorOptions()
        self._decode = kind.decoder().decode
        self._decode_event = kind.event_decoder().decode
        self._streaming = self._options.streaming
        self._resource_version = ""
        self._asked = 0
        self._asked_served = 0
        self._resync_wanted = asyncio.Event()
        self._listed = asyncio.Event()
        self._log = structlog.get_logger(room="kube", kind=kind.name)

    async def run(self) -> None:
        """List and watch for ever; returns by cancellation only."""
        options = self._options
        backoff = Backoff(self._pace.chance, base=options.backoff_base, ceiling=options.backoff_ceiling)
        while True:
            began = self._pace.clock()
            fault: KubeError | None = None
            try:
                if await self._unless_resync(self._cycle()):
                    continue
            except KubeError as error:
                fault = error
                self._judge(error)
            lived = self._pace.clock() - began
            if lived >= options.healthy_after:
                backoff.reset()
            if fault is None and lived >= options.shortest_watch:
                continue
            self.stats.restarts += 1
            await self._unless_resync(
                self._pause(backoff.next(fault.retry_after if fault is not None else None))
            )

    async def resync(self) -> None:
        """List anew from now, and return when the sink has it: what was true at the call is then known.

        A new leader waits for this, because its watch may have been behind when it took the Lease.
        """
        self._asked += 1
        asked = self._asked
        self._resync_wanted.set()
        while self._asked_served < asked:
            await self._listed.wait()

    def _judge(self, error: KubeError) -> None:
        self.stats.last_error = str(error)
        if isinstance(error, Gone):
            self.stats.relists_gone += 1
        if error.status not in _RESUMABLE:
            self._resource_version = ""
        self._log.warning("watch interrupted", error=str(error), relist=not self._resource_version)

    async def _pause(self, seconds: float) -> None:
        await self._pace.sleep(seconds)

    async def _unless_resync(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do `work`, but drop it when a resync is asked for; True then."""
        task = asyncio.ensure_future(work)
        wanted = asyncio.ensure_future(self._resync_wanted.wait())
        try:
            await asyncio.wait({task, wanted}, return_when=asyncio.FIRST_COMPLETED)
            if wanted.done():
                self._resync_wanted.clear()
                self._resource_version = ""
                return True
            await task
            return False
        finally:
            task.cancel()
            wanted.cancel()
            await asyncio.gather(task, wanted, return_exceptions=True)

    async def _cycle(self) -> None:
        """One connection's worth: a list where needed, then a watch until the server ends it."""
        if self._resource_version:
            await self._watch()
        elif self._streaming:
            await self._stream_list()
        else:
            await self._page_list()
            await self._watch()

    def _selector(self) -> dict[str, str | int]:
        return {"fieldSelector": self.kind.field_selector} if self.kind.field_selector else {}

    def _watch_params(self) -> dict[str, str | int]:
        seconds = self._pace.jittered(self._options.watch_seconds, 1.0)
        return {**self._selector(), "allowWatchBookmarks": "true", "timeoutSeconds": round(seconds)}

    # --- lists -------------------------------------------------------------------------------------------

    async def _page_list(self) -> None:
        asked = self._asked
        found = _Found[T]()
        version = ""
        breather = Breather(self._pace.clock)
        self.stats.connects += 1
        async with aclosing(
            self._client.pages(self._path, self._selector(), limit=self._options.page_limit)
        ) as pages:
            async for page in pages:
                self.stats.last_contact = self._pace.clock()
                breather.start()
                version = page.metadata.resource_version
                for raw in page.items or ():
                    self._read_item(raw, found)
                    if breather.spent():
                        await breather.breathe()
        self._deliver(found, version, asked)

    def _read_item(self, raw: msgspec.Raw, found: _Found[T]) -> None:
        try:
            found.add(self._decode(raw))
        except DECODE_ERRORS as error:
            found.add_undecodable(self._refused(bytes(raw), error))

    async def _stream_list(self) -> None:
        """A watch that begins with everything there is (consistent: NotOlderThan without a version)."""
        asked = self._asked
        found = _Found[T]()
        began = self._pace.clock()
        params = {
            **self._watch_params(),
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
        }
        try:
            await self._follow(params, found, asked)
        except KubeError as error:
            if found.done:
                raise
            waited = self._pace.clock() - began
            if error.status in {400, 422} or (
                error.status == 0 and (found.began or waited >= self._options.inactivity)
            ):
                # Not served, or the end of the list never came: pages from now on.
                self._streaming = False
                self._log.info("streamed list not usable, asking for pages", error=str(error))
                if error.status:
                    return await self._cycle()
            raise

    def _deliver(self, found: _Found[T], version: str, asked: int) -> None:
        found.done = True
        self._sink.replaced(self.kind.name, found.objects.values(), found.undecodable.values())
        self._resource_version = version
        self.stats.lists += 1
        self.stats.last_error = ""
        self._asked_served = max(self._asked_served, asked)
        self.synced.set()
        self._listed.set()
        self._listed = asyncio.Event()

    # --- watch -------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        await self._follow({**self._watch_params(), "resourceVersion": self._resource_version}, None, 0)

    async def _follow(self, params: dict[str, str | int], found: _Found[T] | None, asked: int) -> None:
        """Read one stream to its end; while `found` is being filled, events are the list's."""
        stats = self.stats
        stats.connects += 1
        clock = self._pace.clock
        async with aclosing(
            self._client.stream(self._path, params, inactivity=self._options.inactivity)
        ) as lines:
            async for line in lines:
                stats.last_contact = clock()
                stats.last_error = ""
                try:
                    event = self._decode_event(line)
                except DECODE_ERRORS as error:
                    self._take_broken(line, error, found)
                else:
                    kind = event.type
                    if kind == "BOOKMARK":
                        if found is not None and _ends_list(event.object.metadata):
                            self._deliver(found, event.object.metadata.resource_version, asked)
                            found = None
                        elif found is None:
                            self._resource_version = event.object.metadata.resource_version
                    elif kind == "ERROR":
                        raise self._error(line)
                    elif found is not None:
                        found.take(kind, event.object)
                    else:
                        self._take(kind, event.object)
        if found is not None:
            raise KubeError(f"watch of {self._path}: ended before the list was complete")

    def _take(self, kind: str, obj: T) -> None:
        self.stats.events += 1
        if kind == "DELETED":
            self._sink.deleted(self.kind.name, obj)
        else:
            try:
                self._sink.upserted(self.kind.name, obj)
            except WireError as error:
                # It has the right shape, but a value in it (a quantity, say) can't be read.
                self._sink.undecodable(self.kind.name, self._refused(msgspec.json.encode(obj), error))
        self._resource_version = obj.metadata.resource_version

    def _take_broken(self, line: bytes, error: Exception, found: _Found[T] | None) -> None:
        """A line that the kind's decoder refused: an ERROR, or an object that can't be read."""
        try:
            event = _decode_envelope(line)
        except DECODE_ERRORS as fault:
            self._resource_version = ""
            raise Gone(f"watch of {self._path}: a line can't be read: {fault}", 410) from fault
        if event.type == "ERROR":
            raise self._error(line)
        what = self._refused(bytes(event.object), error)
        if event.type == "BOOKMARK":
            raise Gone(f"watch of {self._path}: a bookmark can't be read: {what.fault}", 410) from error
        if found is not None:
            found.take_undecodable(event.type, what)
            return
        self.stats.events += 1
        if event.type == "DELETED":
            self._sink.deleted(self.kind.name, what.partial)
        else:
            self._sink.undecodable(self.kind.name, what)
        if what.resource_version:
            self._resource_version = what.resource_version

    def _error(self, line: bytes) -> KubeError:
        body = bytes(_decode_envelope(line).object)
        try:
            code = msgspec.json.decode(body, type=_Coded).code
        except DECODE_ERRORS:
            code = 500
        return failure(f"watch of {self._path}", code, body)

    def _refused(self, raw: bytes, error: Exception) -> UndecodableObject:
        what = undecodable(raw, error)
        self.stats.undecodable += 1
        self._log.error("object can't be read", namespace=what.namespace, name=what.name, fault=what.fault)
        return what


class _Coded(msgspec.Struct):
    """The code of a metav1.Status."""

    code: int = 500


def _ends_list(metadata: ObjectMeta) -> bool:
    return (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


class _Found(Generic[T]):
    """A list on its way in. Keyed by namespace and name, as a change may come before the list's end."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], T] = {}
        self.undecodable: dict[tuple[str, str], UndecodableObject] = {}
        self.began = False
        self.done = False

    def add(self, obj: T) -> None:
        metadata = obj.metadata
        key = (metadata.namespace, metadata.name)
        self.objects[key] = obj
        if self.undecodable:
            self.undecodable.pop(key, None)

    def add_undecodable(self, what: UndecodableObject) -> None:
        key = (what.namespace, what.name)
        self.undecodable[key] = what
        self.objects.pop(key, None)

    def take(self, kind: str, obj: T) -> None:
        self.began = True
        if kind == "DELETED":
            self._drop((obj.metadata.namespace, obj.metadata.name))
        else:
            self.add(obj)

    def take_undecodable(self, kind: str, what: UndecodableObject) -> None:
        self.began = True
        if kind == "DELETED":
            self._drop((what.namespace, what.name))
        else:
            self.add_undecodable(what)

    def _drop(self, key: tuple[str, str]) -> None:
        self.objects.pop(key, None)
        self.undecodable.pop(key, None)
