"""What a reply leaves behind: the decision record, metrics, the log line; and what became of a prediction.

A record must not keep a whole snapshot alive: it holds the predictions (columns shared by all calls between
two changes) and the names that go with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from extender.allocator.extended import CLAIM_NAME
from extender.api.resource import ResourceClaim
from extender.inventory.ledger import Ledger
from extender.inventory.placements import Placements
from extender.inventory.pods import PodRecord, pod_claim_names
from extender.model.device import DeviceID
from extender.observability.decisions import DecisionRing
from extender.observability.metrics import DecisionOutcome, Metrics
from extender.verbs.desk import Question
from extender.verbs.filter import FilterAnswer
from extender.verbs.named import named_devices, node_forecast
from extender.verbs.views import DecisionView, PredictedDevice


class Recorder:
    """Writes records on replies; settles them when the ledger sees a pod bound and its claims allocated."""

    def __init__(
        self, ring: DecisionRing, metrics: Metrics, *, debug: bool, placements: Placements | None = None
    ) -> None:
        """`debug`: write one log line a decision. `placements` are told where pods went."""
        self._ring = ring
        self._metrics = metrics
        self._debug = debug
        self._placements = placements or Placements()
        self._log = structlog.get_logger("extender.decisions")
        self._ledger: Ledger | None = None

    def watch(self, ledger: Ledger) -> None:
        """The ledger that this recorder observes."""
        self._ledger = ledger

    # ---- replies

    def filtered(self, question: Question, answer: FilterAnswer, *, shadow: bool) -> None:
        """Take down a filter reply."""
        metrics = self._metrics.verbs["filter"]
        for reason, nodes in answer.counts.items():
            metrics.refused(reason, nodes)
        main = max(answer.counts, key=lambda reason: answer.counts[reason], default=None)
        outcome: DecisionOutcome = "error" if answer.error else "passed" if answer.passed else "refused"
        deciding = str(main) if main is not None and outcome != "passed" else "none"
        metrics.decided(outcome, deciding)
        meta = question.pod.metadata
        self._ring.record(
            DecisionView(
                pod_uid=meta.uid,
                pod_namespace=meta.namespace,
                pod_name=meta.name,
                time=question.now,
                verb="filter",
                candidates=len(question.names),
                passed=len(answer.passed),
                rejected={str(reason): nodes for reason, nodes in answer.counts.items()},
                text=answer.error,
                shadow=shadow,
            ),
            node_forecast(question),
        )
        if not self._debug:
            return
        self._log.debug(
            "decision",
            verb="filter",
            pod=f"{meta.namespace}/{meta.name}",
            uid=meta.uid,
            workload=question.workload,
            outcome=outcome,
            reason=deciding,
            candidates=len(question.names),
            passed=len(answer.passed),
            rejected={str(why): nodes for why, nodes in answer.counts.items()},
            error=answer.error,
            shadow=shadow,
        )

    def scored(self, question: Question, best: int, score: int) -> None:
        """Take down a prioritize reply: the last reply before binding is the one that counts."""
        meta = question.pod.metadata
        self._ring.scored(meta.uid, question.names[best], score, node_forecast(question))
        if not self._debug:
            return
        self._log.debug(
            "decision",
            verb="prioritize",
            pod=f"{meta.namespace}/{meta.name}",
            uid=meta.uid,
            best=question.names[best],
            score=score,
            devices=[named.device for named in named_devices(question, best)],
        )

    # ---- what the ledger saw (extender.inventory.ledger.Observer)

    def pod_bound(self, record: PodRecord) -> None:
        """A pod was bound: settle, if its claims are there."""
        self._settle(record)

    def pod_gone(self, record: PodRecord) -> None:
        """Nothing follows: the record stays for people to read."""

    def claim_allocated(self, claim: ResourceClaim) -> None:
        """A claim was allocated: settle the pods that wait for it."""
        if self._debug:
            # Among the lines of decisions, its place tells what a reply could not know yet.
            allocation = claim.status.allocation
            results = allocation.devices.results or () if allocation is not None else ()
            self._log.debug(
                "allocation seen",
                claim=f"{claim.metadata.namespace}/{claim.metadata.name}",
                devices=[f"{result.driver}/{result.pool}/{result.device}" for result in results],
            )
        if self._ledger is None:
            return
        for owner in claim.metadata.owner_references or ():
            if owner.kind == "Pod":
                self._settle(self._ledger.pod_by_name(claim.metadata.namespace, owner.name))
        for consumer in claim.status.reserved_for or ():
            self._settle(self._ledger.pod_by_name(claim.metadata.namespace, consumer.name))

    def _settle(self, record: PodRecord | None) -> None:
        if record is None or not record.node or self._ledger is None:
            return
        devices = self._devices(record, self._ledger)
        if devices is None:
            return
        outcome = self._ring.settle(record.uid, record.node, devices)
        if outcome in {"right", "wrong", "unpredicted"}:
            view = self._ring.get(record.uid)
            reason = view.unpredicted if view is not None and view.unpredicted else "none"
            self._metrics.predicted(outcome, reason)
            if view is not None:
                ids = [_device_id(device.device) for device in devices]
                self._placements.placed(record.uid, record.node, ids, view.time)

    @staticmethod
    def _devices(record: PodRecord, ledger: Ledger) -> Sequence[PredictedDevice] | None:
        """The devices that the pod's claims hold; None while one has no allocation."""
        found: list[PredictedDevice] = []
        backed = record.pod.status.extended_resource_claim_status
        special = backed.resource_claim_name if backed is not None else None
        names = pod_claim_names(record.pod)
        if names is None:
            return None
        for name in names:
            claim = ledger.claim_named(record.key.namespace, name)
            if claim is None or claim.status.allocation is None:
                return None
            said = CLAIM_NAME if name == special else name
            found.extend(
                PredictedDevice(said, result.request, f"{result.driver}/{result.pool}/{result.device}")
                for result in claim.status.allocation.devices.results or ()
            )
        return found


def _device_id(text: str) -> DeviceID:
    """A device by "driver/pool/device"; a pool's name may have slashes."""
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    return DeviceID(driver, pool, device)
