"""Where every source ends: the store, then the health of what it brought, then the counters.

Never: HTTP, or who may speak for a node (that is decided before).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from extender.api.telemetry import Device, Sample
from extender.inventory.health import HealthBook, Transition
from extender.inventory.telemetry import Applied, Refusal, Source, TelemetryStore
from extender.telemetry.metrics import TelemetryMetrics

_XIDS_NAMED: Final = 1000  # a sender can't make more series than this


@dataclass(frozen=True, slots=True)
class Intake:
    """The three that a sample passes; `transitioned` hears what changed (events, logs)."""

    store: TelemetryStore
    health: HealthBook
    metrics: TelemetryMetrics
    transitioned: Callable[[list[Transition]], None]

    def sample(self, sample: Sample, now: float) -> Refusal | None:
        """Take an agent's sample, whose sender speaks for its node; or say why it changed nothing."""
        applied = self.store.apply(sample, now)
        if isinstance(applied, Refusal):
            self.metrics.refused.labels(str(applied)).inc()
            return applied
        self.metrics.samples.labels("agent").inc()
        self._observe(applied, now)
        return None

    def readings(
        self, node: str, devices: Sequence[Device], source: Source, age_s: float, now: float
    ) -> None:
        """Take readings of another source for a node."""
        self.metrics.samples.labels(source.name.lower()).inc()
        applied = self.store.apply_readings(node, devices, source, age_s, now)
        self._observe(applied, now)

    def tick(self, now: float) -> None:
        """Every second or so: quiet times end, silent nodes are forgotten."""
        self.store.expire(now)
        self._tell(self.health.retain(self.store.uuids, now))
        self._tell(self.health.tick(now))

    def _observe(self, applied: Applied, now: float) -> None:
        for heard in applied.xids:
            code = heard.xid.code
            self.metrics.xids.labels(str(code) if code < _XIDS_NAMED else "other").inc()
        self._tell(self.health.observe(applied, now))

    def _tell(self, transitions: list[Transition]) -> None:
        if transitions:
            self.metrics.transitioned(transitions)
            self.transitioned(transitions)
