"""The metrics that are counted as things happen. What can be read at scrape time is in `readings`.

Label values are enumerations of ours (verbs, outcomes, reason codes), so no series grows with the cluster.
Names follow prometheus.io/docs/practices/naming: prefix `berth_`, base units, `_total` for counters.
Never: a default registry, or a pod's or node's name as a label.
"""

from __future__ import annotations

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

Verb = Literal["filter", "prioritize", "preempt", "bind"]
VERBS: tuple[Verb, ...] = ("filter", "prioritize", "preempt", "bind")

DecisionOutcome = Literal["echo", "passed", "refused", "error"]
"""A reply as a whole: not ours; at least one node is left; none is; an Error instead of an answer."""

VerbFault = Literal["request", "unsynced", "internal"]
"""Why a request could not be answered: unreadable; this replica may not answer; a fault of ours."""

PredictionResult = Literal["right", "wrong", "unpredicted"]

NO_REASON = "none"

# From a quarter of a millisecond (an echo of few names) to kube-scheduler's usual time-outs.
VERB_BUCKETS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LAG_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class _Bound:
    """A counter with its verb filled in; children are bound once."""

    def __init__(self, counter: Counter, verb: Verb) -> None:
        self._counter = counter
        self._verb = verb
        self._children: dict[tuple[str, ...], Counter] = {}

    def child(self, *labels: str) -> Counter:
        found = self._children.get(labels)
        if found is None:
            found = self._children[labels] = self._counter.labels(self._verb, *labels)
        return found


class VerbMetrics:
    """The metrics of one verb; `observe` takes a reply's time in seconds."""

    def __init__(
        self, verb: Verb, *, seconds: Histogram, decisions: Counter, refusals: Counter, faults: Counter
    ) -> None:
        self.observe = seconds.labels(verb).observe
        self._decisions = _Bound(decisions, verb)
        self._refusals = _Bound(refusals, verb)
        self._faults = _Bound(faults, verb)

    def decided(self, outcome: DecisionOutcome, reason: str = NO_REASON) -> None:
        """Count a reply; `reason` is the code of the refusal that decided it."""
        self._decisions.child(outcome, reason).inc()

    def refused(self, reason: str, nodes: int) -> None:
        """Count `nodes` that were refused for `reason`."""
        self._refusals.child(reason).inc(nodes)

    def fault(self, kind: VerbFault) -> None:
        """Count a request that could not be answered."""
        self._faults.child(kind).inc()


class Metrics:
    """Every instrument, registered in `registry`."""

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        self.registry = registry
        seconds = Histogram(
            "berth_verb_duration_seconds",
            "Time from the last byte of a request to the first byte of its answer, by verb.",
            ["verb"],
            registry=registry,
            buckets=VERB_BUCKETS,
        )
        decisions = Counter(
            "berth_decisions_total",
            "Replies by verb, outcome and the reason that decided.",
            ["verb", "outcome", "reason"],
            registry=registry,
        )
        refusals = Counter(
            "berth_node_refusals_total",
            "Nodes refused, by verb and reason.",
            ["verb", "reason"],
            registry=registry,
        )
        faults = Counter(
            "berth_verb_faults_total",
            "Requests that could not be answered, by verb and kind of fault.",
            ["verb", "fault"],
            registry=registry,
        )
        self.verbs = {
            verb: VerbMetrics(verb, seconds=seconds, decisions=decisions, refusals=refusals, faults=faults)
            for verb in VERBS
        }
        self._predictions = Counter(
            "berth_predictions_total",
            "Pods that were bound, by whether their devices were the predicted ones, and the reason if not.",
            ["result", "reason"],
            registry=registry,
        )
        self.loop_lag = Histogram(
            "berth_loop_lag_seconds",
            "How much later than asked the event loop woke a sleeper.",
            registry=registry,
            buckets=LAG_BUCKETS,
        )
        self._drift = Gauge(
            "berth_inventory_drift_objects",
            "Objects that differed from a fresh list at the last check, by kind and difference.",
            ["kind", "difference"],
            registry=registry,
        )
        self.drift_checked = Gauge(
            "berth_inventory_drift_check_timestamp_seconds",
            "When the ledger was last compared with a fresh list.",
            registry=registry,
        )
        self.leader = Gauge("berth_leader", "Whether this replica holds the Lease.", registry=registry)
        Gauge(
            "berth_build_info", "Always 1; the label says what runs.", ["version"], registry=registry
        ).labels(version).set(1)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

    def predicted(self, result: PredictionResult, reason: str = NO_REASON) -> None:
        """Count what became of a prediction."""
        self._predictions.labels(result, reason).inc()

    def drifted(self, kind: str, difference: Literal["missing", "extra", "different"], objects: int) -> None:
        """Set how many objects of a kind differ."""
        self._drift.labels(kind, difference).set(objects)
