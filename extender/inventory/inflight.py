"""Pods in flight: those which a filter reply sent to nodes, with no end seen yet.

                 filter reply                 pod bound, gone or terminal
    (unknown) ------------------> in flight ------------------------------> (ended)
                  ^    |  ^            |     PodScheduled changed, nomination cleared
                  |    |  | nominated  |     all claims allocated (unsteered)
                  |    +--+ node set:  |     missing from two full lists
                  |      narrowed to   |
                  |      that node     |
                  +--------------------+
                     newer filter call: offers replaced (added, for a pod with a schedulingGroup)

Never ended by time: with default client limits an allocation can follow our reply by more than 10 s. An event
that is older than the request (by resourceVersion) says nothing of what came after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from extender.api.core import Pod
from extender.api.meta import Condition
from extender.inventory.devices import Int32
from extender.inventory.pods import TERMINAL, scheduled_condition
from extender.model.ids import ObjectKey


@dataclass(frozen=True, eq=False, slots=True)
class NodesAt(Collection[str]):
    """Node names by slot (int32[n], all known): a fleet's worth of names in the space of its slots."""

    slots: Int32
    names: Sequence[str]
    slot_of: Mapping[str, int]

    def __contains__(self, name: object) -> bool:
        slot = self.slot_of.get(name) if isinstance(name, str) else None
        return slot is not None and bool((self.slots == slot).any())

    def __iter__(self) -> Iterator[str]:
        return (self.names[slot] for slot in self.slots.tolist())

    def __len__(self) -> int:
        return len(self.slots)


def nodes_at(
    slots: Int32, offered: Sequence[str], names: Sequence[str], slot_of: Mapping[str, int]
) -> Collection[str]:
    """The names in `offered`, whose slots are `slots`, in the least space."""
    return tuple(offered) if bool(np.any(slots < 0)) else NodesAt(slots, names, slot_of)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a pod was offered. `everywhere`: it was found at start, any node may be meant.

    `narrowed`: a nomination was seen after the reply.
    """

    pod: Pod
    nodes: Collection[str]
    at: float
    everywhere: bool = False
    narrowed: bool = False

    def covers(self, node: str) -> bool:
        """Whether the pod may land on `node`."""
        return self.everywhere or node in self.nodes


@dataclass(frozen=True, slots=True)
class Assumption:
    """Where a pod will probably land: the one node with the best score."""

    node: str
    rows: tuple[int, ...]
    at: float
    claims: frozenset[ObjectKey] = frozenset()
    """Unallocated claims that the rows are for; another user of one gets the same devices."""


ASSUMED_FOR = 10.0  # seconds
GONE_KEPT = 1024
"""Pods whose end is remembered: a call about one can still be on its way to us when the watch tells of it."""


class InFlight:
    """Offers and assumptions by pod UID; written by the server's edge and by the ledger."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._assumed: dict[str, Assumption] = {}
        self._missed: frozenset[str] = frozenset()
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._offers)

    def has(self, uid: str) -> bool:
        """Whether the pod is in flight, or something is assumed of it."""
        return uid in self._offers or uid in self._assumed

    def offered(self, pod: Pod, nodes: Collection[str], now: float) -> None:
        """A filter reply let `pod` onto `nodes`. An empty reply ends the flight: the attempt has failed.

        Nothing begins for a pod that is gone already: no event would end it.
        """
        uid = pod.metadata.uid
        if uid in self._gone:
            return
        before = self._offers.get(uid)
        self._assumed.pop(uid, None)
        everywhere = False
        if before is not None and pod.spec.scheduling_group is not None:
            nodes = tuple(dict.fromkeys((*before.nodes, *nodes)))
            everywhere = before.everywhere
        if nodes or everywhere:
            self._offers[uid] = Offer(pod, nodes, now, everywhere)
        else:
            self._offers.pop(uid, None)

    def found(self, pod: Pod, now: float) -> None:
        """A pod of ours that was ungated and unbound at start or takeover: it may be meant for any node."""
        self._offers.setdefault(pod.metadata.uid, Offer(pod, (), now, everywhere=True))

    def assume(self, uid: str, assumption: Assumption) -> None:
        """The reply made one node the only one, or the only best one."""
        if uid not in self._gone:
            self._assumed[uid] = assumption

    def ended(self, uid: str) -> None:
        """The pod is bound or terminal, its attempt failed, or its claims are allocated."""
        self._offers.pop(uid, None)
        self._assumed.pop(uid, None)

    def gone(self, uid: str) -> None:
        """The pod is not there any more, and won't come back under this UID."""
        self.ended(uid)
        self._gone[uid] = None
        if len(self._gone) > GONE_KEPT:
            del self._gone[next(iter(self._gone))]

    def listed(self, present: AbstractSet[str]) -> None:
        """A full list of pods arrived, with these UIDs.

        A pod that the scheduler knew before our list may be missing from it only for being newer than the
        list; missing from the next one too, it is gone.
        """
        missing = frozenset(self._offers.keys() - present)
        for uid in missing & self._missed:
            self.ended(uid)
        self._missed = missing - self._missed

    def pod_changed(self, before: Pod | None, pod: Pod) -> None:
        """Read the end, or a narrowing, from a pod event."""
        uid = pod.metadata.uid
        offer = self._offers.get(uid)
        if offer is None:
            return
        if pod.status.phase in TERMINAL:
            self.ended(uid)
            return
        if pod.spec.node_name:
            # The binding may reach us before the allocation: what was assumed is taken all the same.
            self._offers.pop(uid, None)
            return
        if _not_newer(pod, offer.pod):
            return
        nominated = pod.status.nominated_node_name
        asked_with = offer.pod.status.nominated_node_name
        known = before.status.nominated_node_name if before is not None else asked_with
        if nominated and nominated not in {known, asked_with}:
            self._offers[uid] = replace(offer, nodes=(nominated,), everywhere=False, narrowed=True)
            assumed = self._assumed.get(uid)
            if assumed is not None and assumed.node != nominated:
                del self._assumed[uid]
            return
        cleared = not nominated and bool(known) and (offer.narrowed or bool(asked_with))
        if cleared or _failed(offer.pod, before, pod):
            self.ended(uid)

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

    def drop_assumptions(self) -> None:
        """Rows have got other numbers."""
        self._assumed.clear()


def _not_newer(pod: Pod, asked: Pod) -> bool:
    """Whether an event is not after the state that the scheduler asked with. Versions count up (KEP-5504)."""
    seen, known = pod.metadata.resource_version, asked.metadata.resource_version
    return seen.isdecimal() and known.isdecimal() and int(seen) <= int(known)


def _failed(asked: Pod, before: Pod | None, pod: Pod) -> bool:
    """Whether PodScheduled changed after our reply: differs from what the request and the ledger had."""
    condition = _told(scheduled_condition(pod))
    if condition is None or condition[0] == "True":
        return False
    known = _told(scheduled_condition(before)) if before is not None else None
    return condition not in {known, _told(scheduled_condition(asked))}


def _told(condition: Condition | None) -> tuple[str, str, str] | None:
    return None if condition is None else (condition.status, condition.reason, condition.message)
