"""The desk: what all verbs share, and the question that a pod and its candidates make.

Everything here is a function of (request, snapshot, now): a retry, a simulated cycle or a what-if is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Protocol

import numpy as np
import numpy.typing as npt

from extender.allocator.demand import Demand, demand_of, units
from extender.allocator.predict import Predictor
from extender.allocator.prediction import Predictions
from extender.api.core import Pod
from extender.api.quantity import QuantityError
from extender.inventory.devices import Int32
from extender.inventory.inflight import Assumption
from extender.inventory.requests import unreadable_quantity
from extender.inventory.snapshot import Snapshot
from extender.inventory.topology import Topology
from extender.model.errors import WireError
from extender.model.ids import ObjectKey
from extender.model.reason import Reason
from extender.model.workload import WorkloadClass
from extender.scoring.bench import Bench
from extender.scoring.candidates import Candidates
from extender.scoring.policy import Policy
from extender.scoring.thresholds import Thresholds
from extender.verbs.workload import workload_class

Int8 = npt.NDArray[np.int8]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Question:
    """A pod, its n candidate nodes by name and slot (int32[n], -1 unknown), and what first fit would do."""

    pod: Pod
    names: Sequence[str]
    slots: Int32
    demand: Demand
    workload: WorkloadClass
    predictions: Predictions
    snapshot: Snapshot
    now: float
    assumptions: Sequence[tuple[str, Assumption]] = ()


def no_detail(_: int) -> str:
    """Nothing to add."""
    return ""


@dataclass(frozen=True, eq=False, slots=True)
class Refusals:
    """`refused` int8[n]: 0 passes, k means `reasons[k - 1]`.

    The texts have no numbers or names that differ from node to node (events are aggregated by text);
    `detail(i)`, asked by explain only, has them. `notes` is for whoever owns the pod: what could not be used
    of it.
    """

    refused: Int8
    reasons: Sequence[tuple[Reason, str]]
    detail: Callable[[int], str] = no_detail
    notes: Sequence[str] = ()


class Veto(Protocol):
    """One ground for refusing nodes."""

    def refuse(self, question: Question) -> Refusals | None:
        """Which candidates are refused; None when none is."""


class SlotFinder:
    """Names to slots. prioritize comes with the names that filter let through, so these are kept."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[str], Mapping[str, int], Int32] | None = None

    def slots(self, names: Sequence[str], topology: Topology) -> Int32:
        """Slots of `names`, int32[n], -1 for a name that the ledger does not know."""
        kept = self._last
        if kept is not None and kept[1] is topology.slot_of and kept[0] == names:
            return kept[2]
        try:
            known = itemgetter(*names)(topology.slot_of) if len(names) > 1 else [topology.slot_of[names[0]]]
            found = np.fromiter(known, np.int32, len(names))
        except (KeyError, IndexError):
            found = np.fromiter(map(topology.slot_of.get, names, repeat(-1)), np.int32, len(names))
        self.keep(names, topology, found)
        return found

    def keep(self, names: Sequence[str], topology: Topology, slots: Int32) -> None:
        """Take note of the slots of `names`: somebody will come with these."""
        self._last = (names, topology.slot_of, slots)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose pods are ours."""

    schedulers: frozenset[str]
    excluded_namespaces: frozenset[str]
    priority_classes: Mapping[str, WorkloadClass]

    def covers(self, pod: Pod) -> bool:
        """Whether we have an opinion about the pod at all."""
        return (
            pod.spec.scheduler_name in self.schedulers
            and pod.metadata.namespace not in self.excluded_namespaces
        )


@dataclass(eq=False, slots=True)
class Desk:
    """The tools of the verbs. `policy` is swapped whole when its file changes."""

    scope: Scope
    predictor: Predictor
    vetoes: Sequence[Veto]
    bench: Bench
    policy: Policy
    finder: SlotFinder

    def question(
        self,
        pod: Pod,
        names: Sequence[str],
        snapshot: Snapshot,
        assumptions: Sequence[tuple[str, Assumption]],
        now: float,
    ) -> Question:
        """Resolve names, demand and predictions.

        Assumptions about the pod itself are left out, and those for a claim that it shares: once that claim
        is allocated, the devices are its own.

        Raises:
            WireError: the pod asks for an amount that is no quantity; the text names the field.
        """
        slots = self.finder.slots(names, snapshot.topology)
        try:
            demand = demand_of(pod, snapshot)
        except QuantityError as error:
            raise WireError(f"{unreadable_quantity(pod.spec)}: {error}") from error
        uid = pod.metadata.uid
        own = claims_of(demand)
        others = [(o, held) for o, held in assumptions if o != uid and not held.claims & own]
        assumed = frozenset(row for _, held in others for row in held.rows)
        predictions = self.predictor.predict(demand, slots, snapshot, assumed)
        workload = workload_class(
            pod,
            asks_for_devices=demand.asks_for_devices,
            by_priority_class=self.scope.priority_classes,
        )
        return Question(pod, names, slots, demand, workload, predictions, snapshot, now, others)

    def in_flight_at_start(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether an earlier leader may have offered the pod nodes: ours, ungated, unbound, wants devices."""
        return (
            self.scope.covers(pod)
            and not pod.spec.node_name
            and not pod.spec.scheduling_gates
            and demand_of(pod, snapshot).asks_for_devices
        )

    def weights(self, question: Question) -> dict[str, float]:
        """Judges and weights for the pod."""
        return self.policy.weights(question.workload, question.pod.metadata.namespace)


def claims_of(demand: Demand) -> frozenset[ObjectKey]:
    """Claims of the pod that have no allocation yet."""
    return frozenset(ObjectKey(c.metadata.namespace, c.metadata.name) for c in demand.claims)


def candidates_of(question: Question, thresholds: Thresholds | None = None) -> Candidates:
    """The question as judges see it, with the policy's thresholds."""
    demand, predictions = question.demand, question.predictions
    wanted = 0
    if demand.claims:
        first = next(iter(demand.claims[0].spec.devices.requests or ()), None)
        form = (first.exactly or next(iter(first.first_available or ()), None)) if first is not None else None
        wanted = (form.count or 1) if form is not None else 1
    elif demand.extended and predictions.total.any():
        wanted = units(next(iter(demand.extended.values())))
    return Candidates(
        workload=question.workload,
        asks_for_devices=demand.asks_for_devices,
        slots=question.slots,
        free=predictions.free,
        total=predictions.total,
        wanted=wanted,
        amounts=demand.amounts,
        rows=predictions.rows,
        devices=predictions.by_slot,
        predicted=predictions.predicted,
        assumed=question.assumptions,
        thresholds=thresholds or Thresholds(),
    )
