"""The verbs as a replica has them, without a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from extender.allocator.columns import SelectorColumns
from extender.allocator.features import Features
from extender.allocator.predict import Predictor
from extender.allocator.shapes import ShapeSearch
from extender.inventory.health import HealthBook
from extender.inventory.health_table import parse_health_table
from extender.inventory.ledger import Ledger
from extender.inventory.outlook import Lookout
from extender.inventory.placements import Placements
from extender.inventory.telemetry import TelemetryStore
from extender.observability.decisions import DecisionRing
from extender.observability.metrics import Metrics
from extender.scoring.bench import Bench
from extender.scoring.fullness import Pack, Spread
from extender.scoring.pool import Pool
from extender.scoring.telemetry import Telemetry
from extender.selectors import Environment
from extender.server.record import Recorder
from extender.server.verbs import VerbDeps, VerbRoutes
from extender.verbs.desk import Desk, Scope, SlotFinder
from extender.verbs.health_veto import HealthVeto
from extender.verbs.memory_veto import MemoryVeto
from extender.wiring.policyfile import load_policy

Clock = Callable[[], float]


class Open:
    """A standing, switch and binder with nothing in the way."""

    def obstacle(self) -> str:
        """Nothing is in the way."""
        return ""

    def enforce(self) -> bool:
        """Vetoes count."""
        return True

    def shadow(self) -> bool:
        """Not in shadow mode."""
        return False

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Bind nothing."""
        raise NotImplementedError(namespace, name, uid, node)


def lookout() -> Lookout:
    """A fleet of which telemetry knows nothing yet."""
    table = parse_health_table(Path("policies/health.yaml").read_text("utf-8"), "policies/health.yaml")
    return Lookout(TelemetryStore(), HealthBook(table))


def desk_on(
    book: Ledger,
    telemetry: Lookout | None = None,
    *,
    placements: Placements | None = None,
    clock: Clock = time.time,
) -> VerbRoutes:
    """The hot routes over a ledger, with the shipped policy."""
    telemetry = telemetry or lookout()
    columns = SelectorColumns(Environment())
    features = Features.default("1.37")
    accelerators = ["nvidia.com/gpu*"]
    bench = Bench([Pack(), Spread(), Pool(accelerators), Telemetry(telemetry, placements or Placements())])
    desk = Desk(
        scope=Scope(frozenset({"default-scheduler"}), frozenset(), {}),
        predictor=Predictor(columns, ShapeSearch(columns, columns.relevant, features)),
        vetoes=(HealthVeto(telemetry, accelerators), MemoryVeto(telemetry)),
        bench=bench,
        policy=load_policy(Path("policies/default.yaml"), bench),
        finder=SlotFinder(),
    )
    metrics = Metrics(CollectorRegistry(), "bench")
    open_ = Open()
    recorder = Recorder(DecisionRing(4096), metrics, debug=False)
    recorder.watch(book)
    return VerbRoutes(VerbDeps(book, desk, open_, open_, open_, recorder, metrics, clock, time.perf_counter))
