"""The verbs as a replica has them, without a cluster."""

from __future__ import annotations

import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from extender.allocator.columns import SelectorColumns
from extender.allocator.features import Features
from extender.allocator.predict import Predictor
from extender.allocator.shapes import ShapeSearch
from extender.inventory.ledger import Ledger
from extender.observability.decisions import DecisionRing
from extender.observability.metrics import Metrics
from extender.scoring.bench import Bench
from extender.scoring.fullness import Pack, Spread
from extender.scoring.pool import Pool
from extender.selectors import Environment
from extender.server.record import Recorder
from extender.server.verbs import VerbDeps, VerbRoutes
from extender.verbs.desk import Desk, Scope, SlotFinder
from extender.wiring.policyfile import load_policy


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


def desk_on(book: Ledger) -> VerbRoutes:
    """The hot routes over a ledger, with the shipped policy."""
    columns = SelectorColumns(Environment())
    features = Features.default("1.37")
    bench = Bench([Pack(), Spread(), Pool(["nvidia.com/gpu*"])])
    desk = Desk(
        scope=Scope(frozenset({"default-scheduler"}), frozenset(), {}),
        predictor=Predictor(columns, ShapeSearch(columns, columns.relevant, features)),
        vetoes=(),
        bench=bench,
        policy=load_policy(Path("policies/default.yaml"), bench),
        finder=SlotFinder(),
    )
    metrics = Metrics(CollectorRegistry(), "bench")
    open_ = Open()
    recorder = Recorder(DecisionRing(4096), metrics, debug=False)
    recorder.watch(book)
    return VerbRoutes(
        VerbDeps(book, desk, open_, open_, open_, recorder, metrics, time.time, time.perf_counter)
    )
