"""What /metrics says of the ledger."""

from __future__ import annotations

from extender.inventory.ledger import Ledger
from extender.wiring.gauges import LedgerGauges, by_state
from tests.inventory.objects import claim, node, result


def test_devices_are_told_by_driver_and_state() -> None:
    counted = {("gpu", "H100", "free"): 2, ("gpu", "L4", "free"): 3, ("gpu", "L4", "taken"): 1}
    assert by_state(counted) == {("gpu", "free"): 5, ("gpu", "taken"): 1}


def test_a_device_that_two_claims_hold_is_told() -> None:
    book = Ledger(ignored_drivers=())
    gauges = LedgerGauges(book, dict, lambda: 0.0)
    for name in ("c0", "c1"):
        book.upserted("ResourceClaim", claim(name, [result("p", "a")]))
    assert gauges.read().double_granted == 1


def test_the_age_is_that_of_the_snapshot_in_use() -> None:
    now = 100.0
    book = Ledger(ignored_drivers=())
    gauges = LedgerGauges(book, lambda: {"Node": True}, lambda: now)
    gauges.look()
    now = 107.0
    assert gauges.read().snapshot_age == 7
    book.upserted("Node", node("n"))
    reading = gauges.read()
    assert (reading.snapshot_age, reading.objects["Node"], reading.synced) == (0, 1, {"Node": True})
