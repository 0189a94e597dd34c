"""Pods in flight: those which a filter reply sent to nodes, with no end seen yet.

                 filter reply                 pod bound, gone or terminal
    (unknown) ------------------> in flight ------------------------------> (ended)
                  ^    |  ^            |     PodScheduled changed, nomination cleared
                  |    |  | nominated  |     all claims allocated (unsteered)
                  |    +--+ node set:  |
                  |      narrowed to   |
                  |      that node     |
                  +--------------------+
                     newer filter call: offers replaced (added, for a pod with a schedulingGroup)

Never ended by time: with default client limits an allocation can follow our reply by more than 10 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from extender.api.core import Pod
from extender.api.meta import Condition
from extender.inventory.pods import TERMINAL, scheduled_condition


@dataclass(frozen=True, slots=True)
class Offer:
    """What a pod was offered. `everywhere`: it was found at start, any node may be meant."""

    pod: Pod
    nodes: Sequence[str]
    at: float
    everywhere: bool = False

    def covers(self, node: str) -> bool:
        """Whether the pod may land on `node`."""
        return self.everywhere or node in self.nodes


@dataclass(frozen=True, slots=True)
class Assumption:
    """Where a pod will probably land: best score, first in request order. For scores only."""

    node: str
    rows: tuple[int, ...]
    at: float


ASSUMED_FOR = 10.0  # seconds


class InFlight:
    """Offers and assumptions by pod UID; written by the server's edge and by the ledger."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._assumed: dict[str, Assumption] = {}

    def __len__(self) -> int:
        return len(self._offers)

    def offered(self, pod: Pod, nodes: Sequence[str], now: float) -> None:
        """A filter reply let `pod` onto `nodes`. An empty reply ends the flight: the attempt has failed."""
        uid = pod.metadata.uid
        before = self._offers.get(uid)
        self._assumed.pop(uid, None)
        if before is not None and pod.spec.scheduling_group is not None:
            nodes = list({*before.nodes, *nodes})
            everywhere = before.everywhere
        else:
            everywhere = False
        if nodes or everywhere:
            self._offers[uid] = Offer(pod, nodes, now, everywhere)
        else:
            self._offers.pop(uid, None)

    def found(self, pod: Pod, now: float) -> None:
        """A pod of ours that was ungated and unbound at start or takeover: it may be meant for any node."""
        self._offers.setdefault(pod.metadata.uid, Offer(pod, (), now, everywhere=True))

    def assume(self, uid: str, node: str, rows: tuple[int, ...], now: float) -> None:
        """The prioritize reply made `node` the best, first in request order."""
        self._assumed[uid] = Assumption(node, rows, now)

    def ended(self, uid: str) -> None:
        """The pod is bound, gone or terminal, its attempt failed, or its claims are allocated."""
        self._offers.pop(uid, None)
        self._assumed.pop(uid, None)

    def pod_changed(self, before: Pod | None, pod: Pod) -> None:
        """Read the end, or a narrowing, from a pod event."""
        offer = self._offers.get(pod.metadata.uid)
        if offer is None:
            return
        if pod.spec.node_name or pod.status.phase in TERMINAL:
            self.ended(pod.metadata.uid)
            return
        nominated = pod.status.nominated_node_name
        asked_with = offer.pod.status.nominated_node_name
        known = before.status.nominated_node_name if before is not None else asked_with
        if nominated and nominated not in {known, asked_with}:
            self._offers[pod.metadata.uid] = Offer(offer.pod, (nominated,), offer.at)
            assumed = self._assumed.get(pod.metadata.uid)
            if assumed is not None and assumed.node != nominated:
                del self._assumed[pod.metadata.uid]
            return
        cleared = bool(known) and not nominated
        if cleared or _failed(offer.pod, before, pod):
            self.ended(pod.metadata.uid)

    def on(self, node: str) -> Iterator[Offer]:
        """Flights that may land on `node`."""
        return (offer for offer in self._offers.values() if offer.covers(node))

    def offers(self) -> Iterator[Offer]:
        """All flights."""
        return iter(self._offers.values())

    def assumptions(self, now: float) -> list[tuple[str, Assumption]]:
        """Assumptions not older than 10 s, with the pod's UID; older ones are dropped."""
        stale = [uid for uid, held in self._assumed.items() if now - held.at > ASSUMED_FOR]
        for uid in stale:
            del self._assumed[uid]
        return list(self._assumed.items())


def _failed(asked: Pod, before: Pod | None, pod: Pod) -> bool:
    """Whether PodScheduled changed after our reply: differs from what the request and the ledger had."""
    condition = _told(scheduled_condition(pod))
    if condition is None or condition[0] == "True":
        return False
    known = _told(scheduled_condition(before)) if before is not None else None
    return condition not in {known, _told(scheduled_condition(asked))}


def _told(condition: Condition | None) -> tuple[str, str, str] | None:
    return None if condition is None else (condition.status, condition.reason, condition.message)
