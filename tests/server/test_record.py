"""What a reply leaves behind, and what the ledger saw afterwards."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from extender.inventory.ledger import Ledger
from extender.observability.decisions import DecisionRing
from extender.observability.metrics import Metrics
from extender.server.record import Recorder
from extender.sim.generated import claim, node_name


def _seen(*, debug: bool) -> list[object]:
    recorder = Recorder(DecisionRing(16), Metrics(CollectorRegistry(), "test"), debug=debug)
    ledger = Ledger((), [recorder])
    recorder.watch(ledger)
    with capture_logs() as lines:
        ledger.upserted("ResourceClaim", claim("held"))
        ledger.upserted("ResourceClaim", claim("held", taken=[(3, 1)]))
        ledger.upserted("ResourceClaim", claim("held", taken=[(3, 1)]))
    return [(line["claim"], line["devices"]) for line in lines if line["event"] == "allocation seen"]


def test_at_debug_an_allocation_is_logged_once_when_the_ledger_sees_it() -> None:
    assert _seen(debug=True) == [("default/held", [f"gpu.nvidia.com/{node_name(3)}/gpu-1"])]


def test_without_debug_an_allocation_is_not_logged() -> None:
    assert _seen(debug=False) == []
