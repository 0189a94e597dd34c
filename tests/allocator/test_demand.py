"""What a pod asks for, resolved against the ledger."""

from __future__ import annotations

import pytest

from extender.allocator.demand import Demand, demand_of, units
from extender.api.core import Pod
from extender.inventory.ledger import Ledger
from tests.inventory.objects import GPU, claim, device_class, fresh, node, pod, result


@pytest.fixture
def book() -> Ledger:
    ledger = fresh()
    ledger.replaced("Node", [node("n1", {"other.com/x": "4"})], [])
    ledger.replaced("DeviceClass", [device_class("gpu", resource=GPU)], [])
    ledger.replaced("ResourceClaim", [claim("free"), claim("held", [result("p", "a")])], [])
    return ledger


def demanded(ledger: Ledger, member: Pod) -> Demand:
    return demand_of(member, ledger.snapshot())


def test_claims_keep_the_pods_order_and_are_split_by_allocation(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("made"))
    found = demanded(book, pod("q", claims=["held", "free"], templates={"t": "made"}))
    assert [c.metadata.name for c in found.claims] == ["free", "made"]
    assert [c.metadata.name for c in found.allocated] == ["held"]
    assert found.missing == ()


def test_a_claim_that_is_not_seen_or_not_made_is_missing(book: Ledger) -> None:
    assert demanded(book, pod("q", claims=["gone"], templates={"t": "pending"})).missing == ("gone", "t")


def test_an_entry_whose_status_has_no_name_needs_no_claim(book: Ledger) -> None:
    found = demanded(book, pod("q", templates={"t": None}))
    assert (found.missing, found.asks_for_devices) == ((), False)


def test_extended_resources_count_when_a_node_or_a_class_offers_them(book: Ledger) -> None:
    found = demanded(book, pod("q", requests={GPU: "2", "other.com/x": "1", "cpu": "1"}))
    assert found.extended == {GPU: 2000, "other.com/x": 1000}
    assert found.backed is not None
    asked = [r.exactly for r in found.backed.spec.devices.requests or ()]
    assert [(e.device_class_name, e.count) for e in asked if e is not None] == [("gpu", 2)]


def test_what_no_node_and_no_class_offers_is_left_out(book: Ledger) -> None:
    assert demanded(book, pod("q", requests={"nobody.com/y": "1"})).extended == {}


def test_cpu_and_memory_are_no_devices(book: Ledger) -> None:
    assert not demanded(book, pod("q")).asks_for_devices


def test_units_round_up() -> None:
    assert [units(amount) for amount in (0, 1, 1000, 1001)] == [0, 1, 1, 2]
