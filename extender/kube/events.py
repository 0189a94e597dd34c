"""Writes Kubernetes Events (events.k8s.io/v1): what `kubectl describe` shows below an object.

The same message about the same object within `series_seconds` is one Event with a growing series; past the
rate, events are dropped and counted, for an API server under load needs no commentary.

Owns: aggregation, rate, the write. Never: lets a caller wait, or fails one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Literal

import structlog

from extender.kube.client import MERGE_PATCH, ApiClient
from extender.kube.pace import Pace, TokenBucket, micro_time
from extender.model.errors import KubeError, NotFound

CONTROLLER = "berth.scheduler/berth"
_NOTE_LIMIT = 1024
_KEEP = 4096


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"

    @property
    def event_namespace(self) -> str:
        """Events of cluster-scoped objects live in `default`."""
        return self.namespace or "default"


@dataclass(slots=True)
class EventStats:
    """Counters since the start."""

    written: int = 0
    dropped: int = 0
    failed: int = 0


@dataclass(slots=True)
class _Series:
    """An Event that was written, or is about to be."""

    regarding: Regarding
    type: str
    reason: str
    note: str
    action: str
    name: str
    first_at: float
    count: int = 1
    created: bool = False
    queued: bool = True


_Key = tuple[Regarding, str, str, str]


class EventRecorder:
    """Takes events from anywhere on the loop and writes them from `run`.

    Args:
        client: the API server.
        instance: this replica, shown in the event.
        pace: clocks and sleep.
        per_second: writes a second in the long run.
        burst: writes at once.
        series_seconds: how long the same message counts as one event.
        queue: how many may wait; more are dropped.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        instance: str,
        pace: Pace,
        per_second: float = 5.0,
        burst: int = 50,
        series_seconds: float = 600.0,
        queue: int = 1000,
    ) -> None:
        self.stats = EventStats()
        self._client = client
        self._instance = instance
        self._pace = pace
        self._bucket = TokenBucket(per_second, burst, pace.clock())
        self._series_seconds = series_seconds
        self._limit = queue
        self._series: OrderedDict[_Key, _Series] = OrderedDict()
        self._queue: deque[_Key] = deque()
        self._wanted = asyncio.Event()
        self._log = structlog.get_logger(room="kube")

    def record(
        self,
        regarding: Regarding,
        *,
        type: Literal["Normal", "Warning"],  # noqa: A002 - the field's own name
        reason: str,
        note: str,
        action: str,
    ) -> None:
        """Write this soon; never blocks.

        Args:
            regarding: the object.
            type: Normal or Warning.
            reason: a stable code in CamelCase.
            note: a sentence for people; cut at 1 kB.
            action: what we did or failed to do, in CamelCase ("Filter").
        """
        key = (regarding, type, reason, note)
        now = self._pace.clock()
        series = self._series.get(key)
        if series is not None and now < series.first_at + self._series_seconds:
            series.count += 1
            if series.queued:
                return
        elif len(self._queue) >= self._limit:
            self.stats.dropped += 1
            return
        else:
            stamp = int(self._pace.wall().timestamp() * 1e6)
            name = f"{regarding.name[:200]}.{stamp:x}{int(self._pace.chance() * 0xFFFF):04x}"
            series = _Series(regarding, type, reason, note[:_NOTE_LIMIT], action, name, now)
            self._series[key] = series
            while len(self._series) > _KEEP:
                self._series.popitem(last=False)
        series.queued = True
        self._queue.append(key)
        self._wanted.set()

    async def run(self) -> None:
        """Write what waits, at the rate allowed, until cancelled; what waits then is dropped.

        Another leader tells what holds in its term; told in a later one of ours it would be old news.
        """
        try:
            while True:
                if not self._queue:
                    self._wanted.clear()
                    await self._wanted.wait()
                await self.flush()
                if self._queue:
                    await self._pace.sleep(max(0.01, self._bucket.wait(self._pace.clock())))
        finally:
            self.stats.dropped += len(self._queue)
            self._queue.clear()
            self._series.clear()

    async def flush(self) -> int:
        """Write as many as the rate allows now; returns how many were written."""
        written = 0
        while self._queue and self._bucket.take(self._pace.clock()):
            series = self._series.get(self._queue.popleft())
            if series is None:
                self.stats.dropped += 1  # pushed out by newer ones
                continue
            if not series.queued:
                continue  # a series of old was still waiting when its message came anew; one write tells both
            series.queued = False
            try:
                await self._write(series)
            except KubeError as error:
                self.stats.failed += 1
                self._log.warning("event not written", reason=series.reason, error=str(error))
            else:
                self.stats.written += 1
                written += 1
        return written

    async def _write(self, series: _Series) -> None:
        namespace = series.regarding.event_namespace
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        if series.created:
            try:
                await self._client.patch(f"{path}/{series.name}", {"series": self._seen(series)}, MERGE_PATCH)
            except NotFound:
                series.created = False  # events are kept for an hour only: write it anew
            else:
                return
        await self._client.post(path, self._event(series))
        series.created = True

    def _seen(self, series: _Series) -> dict[str, object]:
        return {"count": series.count, "lastObservedTime": micro_time(self._pace.wall())}

    def _event(self, series: _Series) -> dict[str, object]:
        about = series.regarding
        event: dict[str, object] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": about.event_namespace},
            "eventTime": micro_time(self._pace.wall()),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance[:128],
            "action": series.action,
            "reason": series.reason,
            "type": series.type,
            "note": series.note,
            "regarding": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
            },
        }
        if series.count > 1:
            event["series"] = self._seen(series)
        return event
