"""Pods that a lasting reason keeps waiting, found by their conditions, and woken when the reason is gone.

kube-scheduler retries a rejected pod only after an event that concerns it; that a device is well again is
none. Its own PodScheduled condition carries our codes ("1 DeviceLost: ..."), so nothing has to be kept: a new
leader finds the same pods.
Never: a verdict of its own; the verbs are asked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.api.core import Pod
from extender.inventory.ledger import Ledger
from extender.inventory.snapshot import Snapshot
from extender.model.reason import Kind, Reason
from extender.verbs.desk import Desk
from extender.verbs.filter import filter_nodes

CONDITION = "PodScheduled"
FULL_LOOKS = 20
"""So many pods are asked about on all nodes in one look: milliseconds each in a large fleet."""
FULL_SECONDS = 30.0
_LASTING = {str(reason): reason for reason in Reason if reason.kind is not Kind.PASSING}
_COUNTED = re.compile(r"(\d+) (" + "|".join(map(re.escape, _LASTING)) + r"):")


class NudgeQueue(Protocol):
    """Where pods wait for their nudge (extender.kube.nudge)."""

    def add(self, namespace: str, name: str, uid: str) -> None:
        """Nudge this pod soon."""

    def clear(self) -> None:
        """Forget all that wait."""


def reasons_in(message: str) -> dict[Reason, int]:
    """Nodes by each lasting reason of ours that a condition's message counts."""
    found: dict[Reason, int] = {}
    for count, code in _COUNTED.findall(message):
        found[_LASTING[code]] = found.get(_LASTING[code], 0) + int(count)
    return found


def kept_waiting(pod: Pod) -> Mapping[Reason, int]:
    """What a pod waits for, by its condition; empty for one that is placed, gated or waits for others."""
    if pod.spec.node_name or pod.spec.scheduling_gates:
        return {}
    for condition in pod.status.conditions or ():
        if condition.type == CONDITION and condition.status == "False":
            return reasons_in(condition.message)
    return {}


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen of a pod: the counts of its condition, who was refused, and when all nodes were asked."""

    counts: Mapping[Reason, int]
    refused: frozenset[str]
    full_at: float


class Waiting:
    """Who waits, and for which nodes. `freed` is called again and again.

    The first look at a pod compares with the counts of its condition: what cleared before it was looked at,
    or under another leader, is missing there. Later looks compare with the look before, and ask only about
    the nodes that were refused then; about all nodes when the condition has changed, and now and then.
    """

    def __init__(
        self, ledger: Ledger, desk: Desk, clock: Callable[[], float], enforce: Callable[[], bool]
    ) -> None:
        """`enforce`: whether vetoes count; when they are switched off nobody has to wait for them."""
        self._ledger = ledger
        self._desk = desk
        self._clock = clock
        self._enforce = enforce
        self._looks: dict[str, _Look] = {}

    def __len__(self) -> int:
        return len(self._looks)

    def forget(self) -> None:
        """Another replica leads."""
        self._looks.clear()

    def freed(self) -> Iterator[Pod | None]:
        """Pods that have less to wait for than before; None between two pods, for others on the loop."""
        snapshot, now = self._ledger.snapshot(), self._clock()
        waiting = [
            (record.pod, counts)
            for record in snapshot.pods.values()
            if self._desk.scope.covers(record.pod) and (counts := kept_waiting(record.pod))
        ]
        for gone in self._looks.keys() - {pod.metadata.uid for pod, _ in waiting}:
            del self._looks[gone]
        room = FULL_LOOKS
        for pod, counts in waiting:
            before = self._looks.get(pod.metadata.uid)
            full = before is None or before.counts != counts or now - before.full_at >= FULL_SECONDS
            if full and not room:
                if before is None:
                    continue  # at the next look
                full = False
            room -= full
            if self._look(pod, counts, before, snapshot, full=full):
                yield pod
            yield None

    def _look(
        self, pod: Pod, counts: Mapping[Reason, int], before: _Look | None, snapshot: Snapshot, *, full: bool
    ) -> bool:
        """Look at one pod; whether it has less to wait for."""
        everybody = [name for name in snapshot.topology.names if name]
        names = everybody if full or before is None else sorted(before.refused)
        refused = self._refusals(pod, names, snapshot)
        self._looks[pod.metadata.uid] = _Look(
            counts if full or before is None else before.counts,
            frozenset(refused),
            self._clock() if full or before is None else before.full_at,
        )
        return _fewer(refused, counts) if before is None else bool(before.refused - refused.keys())

    def _refusals(self, pod: Pod, names: Sequence[str], snapshot: Snapshot) -> dict[str, Reason]:
        if not names:
            return {}
        question = self._desk.question(pod, names, snapshot, (), self._clock())
        answer = filter_nodes(self._desk, question, enforce=self._enforce())
        said = {**answer.failed, **answer.unresolvable}
        return {
            name: _LASTING[code]
            for name, text in said.items()
            if (code := text.partition(":")[0]) in _LASTING
        }


def _fewer(refused: Mapping[str, Reason], counts: Mapping[Reason, int]) -> bool:
    now = list(refused.values())
    return any(now.count(reason) < count for reason, count in counts.items())


class Nudging:
    """The leader's loop. `run` while this process leads; then it is cancelled."""

    def __init__(
        self,
        waiting: Waiting,
        queue: NudgeQueue,
        *,
        interval_s: float,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._waiting = waiting
        self._queue = queue
        self._interval_s = interval_s
        self._sleep = sleep

    async def run(self) -> None:
        """Look again and again, from the conditions alone at first."""
        self._waiting.forget()
        try:
            while True:
                await self.once()
                await self._sleep(self._interval_s)
        finally:
            self._queue.clear()
            self._waiting.forget()

    async def once(self) -> None:
        """One look at everybody who waits."""
        for pod in self._waiting.freed():
            if pod is None:
                await self._sleep(0)
            else:
                self._queue.add(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
