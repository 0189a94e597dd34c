"""Metrics of what telemetry brings to a replica."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge

from extender.api.telemetry import READINGS
from extender.inventory.health import BY_GRAVITY, Transition
from extender.inventory.outlook import Outlook
from extender.inventory.telemetry import TelemetryStore


class TelemetryMetrics:
    """Counters of samples, refusals, scrapes and transitions, on a given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"berth_telemetry_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"berth_telemetry_{name}", text, labels, registry=registry)

        self.samples = counter("samples_total", "Samples and scrapes that were applied.", ("source",))
        self.refused = counter("samples_refused_total", "Samples that changed nothing, by why.", ("why",))
        self.failed = counter("scrapes_failed_total", "Scrapes without a result, by why.", ("source", "why"))
        self.transitions = counter(
            "health_transitions_total", "Reasons that devices entered or left.", ("reason", "entered")
        )
        self.xids = counter("xids_total", "XIDs heard from agents and exporters.", ("xid",))
        self.disagreements = gauge(
            "source_disagreements",
            "Fresh readings of two sources further apart than the bound.",
            ("reading",),
        )
        self.nodes = gauge("nodes", "Nodes by whether they were heard lately.", ("heard",))
        self.devices = gauge("devices", "Devices with a row of telemetry.")
        self.unjoined = gauge(
            "unjoined_devices",
            "Devices that are published and not seen by telemetry, or seen and not published.",
            ("found",),
        )
        self.unfit = gauge("unfit_devices", "Published devices against which a reason holds.", ("reason",))
        self.blocked = gauge(
            "blocked_devices",
            "Free, fit devices behind an unfit first one that no taint takes out of the way.",
        )
        self.blocking_nodes = gauge("blocking_nodes", "Nodes whose first free device is unfit.")
        for reason in BY_GRAVITY:
            self.unfit.labels(str(reason)).set(0)

    def transitioned(self, transitions: list[Transition]) -> None:
        """Count what a sample brought about."""
        for t in transitions:
            self.transitions.labels(str(t.reason), str(t.entered).lower()).inc()

    def refresh(self, store: TelemetryStore, now: float) -> None:
        """Bring the gauges up to date; called before they are read."""
        heard = {"fresh": 0, "stale": 0, "silent": 0}
        for node in store.nodes():
            age = now - node.heard_at
            fresh = age <= store.ages.fresh_s
            heard["fresh" if fresh else "stale" if age <= store.ages.absent_s else "silent"] += 1
        for state, count in heard.items():
            self.nodes.labels(state).set(count)
        self.devices.set(len(store))
        for name, count in zip(READINGS, store.columns.disagreements.tolist(), strict=True):
            if count:
                self.disagreements.labels(name).set(count)

    def looked(self, outlook: Outlook, blocked: Mapping[int, int]) -> None:
        """Bring the gauges of the join up to date; `blocked`: devices by the slot of their node."""
        published, seen = outlook.counts()
        self.unjoined.labels("published").set(published)
        self.unjoined.labels("seen").set(seen)
        counts = np.bincount(outlook.unfit[outlook.topology.order], minlength=len(BY_GRAVITY) + 1)
        for reason, count in zip(BY_GRAVITY, counts[1:].tolist(), strict=True):
            self.unfit.labels(str(reason)).set(count)
        self.blocked.set(sum(blocked.values()))
        self.blocking_nodes.set(len(blocked))
