"""The core of a replica: ledger, selectors, allocator, judges, desk; the same for every source of state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from extender.allocator.columns import SelectorColumns
from extender.allocator.features import Features
from extender.allocator.predict import Predictor
from extender.allocator.shapes import ShapeSearch
from extender.inventory.ledger import Ledger
from extender.inventory.placements import Placements
from extender.observability.decisions import DecisionRing
from extender.observability.metrics import Metrics
from extender.scoring.bench import Bench
from extender.scoring.fullness import Pack, Spread
from extender.scoring.pool import Pool
from extender.scoring.telemetry import Telemetry as TelemetryJudge
from extender.selectors import Environment
from extender.server.reader import Reader
from extender.server.record import Recorder
from extender.server.standing import Standing, Switch
from extender.server.verbs import VerbDeps, VerbRoutes
from extender.settings import Settings
from extender.verbs.bind import Binder
from extender.verbs.desk import Desk, Scope, SlotFinder
from extender.verbs.health_veto import HealthVeto
from extender.verbs.memory_veto import MemoryVeto
from extender.wiring.clock import steady_clock
from extender.wiring.policyfile import load_policy
from extender.wiring.telemetry import Telemetry, build_telemetry

KUBERNETES = "1.37"
"""The release whose default features the allocator has."""


@dataclass(frozen=True, slots=True)
class Core:
    """What is built once whatever the source of state is."""

    settings: Settings
    version: str
    registry: CollectorRegistry
    metrics: Metrics
    ring: DecisionRing
    recorder: Recorder
    ledger: Ledger
    selectors: SelectorColumns
    features: Features
    desk: Desk
    telemetry: Telemetry

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of verbs and telemetry: a veto compares the age of a sample with the time of a call."""
        return self.telemetry.clock


def build_core(settings: Settings, version: str) -> Core:
    """Build it. Raises SettingsError for a policy or a health table that can't be used."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, version)
    telemetry = build_telemetry(settings, registry, steady_clock())
    ring = DecisionRing(settings.decisions.ring_size)
    placements = Placements()
    recorder = Recorder(ring, metrics, debug=settings.logging.level == "debug", placements=placements)
    ledger = Ledger(settings.inventory.other_drivers, [recorder])
    recorder.watch(ledger)
    selectors = SelectorColumns(Environment())
    features = Features.default(KUBERNETES)
    search = ShapeSearch(selectors, selectors.relevant, features)
    accelerators = settings.inventory.accelerator_resources
    judge = TelemetryJudge(telemetry.lookout, placements)
    bench = Bench([Pack(), Spread(), Pool(accelerators), judge])
    scope = Scope(
        frozenset(settings.scheduler.names),
        frozenset(settings.scheduler.excluded_namespaces),
        settings.scheduler.priority_classes,
    )
    desk = Desk(
        scope=scope,
        predictor=Predictor(selectors, search),
        vetoes=(HealthVeto(telemetry.lookout, accelerators), MemoryVeto(telemetry.lookout)),
        bench=bench,
        policy=load_policy(settings.policy.file, bench),
        finder=SlotFinder(),
    )
    return Core(
        settings, version, registry, metrics, ring, recorder, ledger, selectors, features, desk, telemetry
    )


def verb_endpoints(core: Core, standing: Standing, switch: Switch, binder: Binder) -> Mapping[str, ASGIApp]:
    """What answers kube-scheduler, by path."""
    deps = VerbDeps(
        ledger=core.ledger,
        desk=core.desk,
        standing=standing,
        switch=switch,
        binder=binder,
        recorder=core.recorder,
        metrics=core.metrics,
        clock=core.clock,
        timer=time.perf_counter,
    )
    return VerbRoutes(deps).endpoints()


def reader(core: Core, switch: Switch) -> Reader:
    """The read desk."""
    lookout = core.telemetry.lookout
    return Reader(core.ledger, core.desk, core.ring, switch, core.clock, lookout=lookout)
