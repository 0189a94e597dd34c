"""Wakes waiting pods: a patch of annotation `berth.scheduler/nudge` makes kube-scheduler queue the pod again.

Owns: the queue of pods to nudge and its rate. Never: decides who needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from extender.kube.client import MERGE_PATCH, ApiClient, is_another_object
from extender.kube.pace import Pace, TokenBucket, micro_time
from extender.model.errors import KubeError

NUDGE_ANNOTATION = "berth.scheduler/nudge"

_SHORTEST_WAIT = 0.01
_UNHELD_WAIT = 1.0
"""Seconds until the Lease is asked about again: it is renewed by then, or this task is cancelled."""

# Failures that may pass; a nudge refused for another reason is given up.
_PASSING = frozenset({0, 429, 500, 502, 503, 504})


@dataclass(slots=True)
class NudgeStats:
    """Counters since the start."""

    sent: int = 0
    failed: int = 0
    vanished: int = 0


class Nudger:
    """Pods waiting to be nudged, each once, first come first served. `run` until cancelled.

    Args:
        client: the API server.
        still_ours: whether the Lease is ours by the clock; asked before every patch.
        pace: clocks and sleep.
        per_second: nudges a second in the long run.
        burst: nudges at once.
    """

    def __init__(
        self,
        client: ApiClient,
        still_ours: Callable[[], bool],
        *,
        pace: Pace,
        per_second: float = 10.0,
        burst: int = 20,
    ) -> None:
        self.stats = NudgeStats()
        self._client = client
        self._still_ours = still_ours
        self._pace = pace
        self._bucket = TokenBucket(per_second, burst, pace.clock())
        self._waiting: dict[str, tuple[str, str]] = {}
        self._wanted = asyncio.Event()
        self._log = structlog.get_logger(room="kube")

    @property
    def waiting(self) -> int:
        """How many pods wait for their nudge."""
        return len(self._waiting)

    def add(self, namespace: str, name: str, uid: str) -> None:
        """Nudge this pod soon; asking twice before it is done nudges once."""
        self._waiting.setdefault(uid, (namespace, name))
        self._wanted.set()

    def clear(self) -> None:
        """Forget all that wait: when the Lease is lost, the next leader finds them by their conditions."""
        self._waiting.clear()

    async def run(self) -> None:
        """Send what waits, at the rate allowed."""
        while True:
            if not self._waiting:
                self._wanted.clear()
                await self._wanted.wait()
            await self.flush()
            if self._waiting:
                wait = self._bucket.wait(self._pace.clock()) if self._still_ours() else _UNHELD_WAIT
                await self._pace.sleep(max(_SHORTEST_WAIT, wait))

    async def flush(self) -> int:
        """Send as many as the rate allows now, none without the Lease; returns how many patches were made."""
        made = 0
        for uid, (namespace, name) in list(self._waiting.items()):
            if not self._still_ours() or not self._bucket.take(self._pace.clock()):
                break
            if self._waiting.pop(uid, None) is not None:
                made += await self._send(namespace, name, uid)
        return made

    async def _send(self, namespace: str, name: str, uid: str) -> bool:
        metadata = {"uid": uid, "annotations": {NUDGE_ANNOTATION: micro_time(self._pace.wall())}}
        try:
            await self._client.patch(
                f"/api/v1/namespaces/{namespace}/pods/{name}", {"metadata": metadata}, MERGE_PATCH
            )
        except KubeError as error:
            if is_another_object(error):
                self.stats.vanished += 1  # gone, or another pod of that name: nothing to wake
                return False
            self.stats.failed += 1
            self._log.warning("nudge failed", namespace=namespace, pod=name, error=str(error))
            if error.status in _PASSING:
                self.add(namespace, name, uid)
            return False
        self.stats.sent += 1
        return True
