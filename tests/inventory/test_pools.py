"""Pools through the ledger: which devices count, on which node, in which order."""

from __future__ import annotations

import pytest

from extender.api.meta import ObjectMeta
from extender.api.resource import DeviceTaint, DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from extender.inventory.ledger import Ledger
from tests.inventory.objects import (
    DRIVER,
    claim,
    consuming,
    counters,
    device,
    fresh,
    is_taken,
    node,
    on_node,
    result,
    slice_of,
)


@pytest.fixture
def book() -> Ledger:
    ledger = fresh()
    ledger.replaced("Node", [node("n1"), node("n2")], [])
    return ledger


def publish(ledger: Ledger, *slices: object) -> None:
    for one in slices:
        ledger.upserted("ResourceSlice", one)


def test_devices_come_by_driver_pool_slice_and_list_order(book: Ledger) -> None:
    publish(
        book,
        slice_of("s-2", "b", ["x"], node="n1", count=2),
        slice_of("s-10", "b", ["z", "y"], node="n1", count=2),
        slice_of("s-a", "a", ["late"], node="n1", driver="zzz.example.com"),
    )
    assert on_node(book.snapshot(), "n1") == ["z", "y", "x", "late"]


def test_pools_with_binding_conditions_come_last(book: Ledger) -> None:
    publish(
        book,
        slice_of("s-a", "a", [device("bound", binding_conditions=["ready"])], node="n1"),
        slice_of("s-b", "b", ["plain"], node="n1"),
    )
    assert on_node(book.snapshot(), "n1") == ["plain", "bound"]


def test_a_pool_counts_from_its_last_slice_on(book: Ledger) -> None:
    publish(book, slice_of("s-1", "p", ["a"], node="n1", count=2))
    assert on_node(book.snapshot(), "n1") == []
    assert book.snapshot().topology.doubtful.tolist() == [True, False]
    publish(book, slice_of("s-2", "p", ["b"], node="n1", count=2))
    assert on_node(book.snapshot(), "n1") == ["a", "b"]


def test_a_slice_too_many_makes_a_pool_incomplete(book: Ledger) -> None:
    publish(book, slice_of("s-1", "p", ["a"], node="n1"), slice_of("s-2", "p", ["b"], node="n1"))
    assert on_node(book.snapshot(), "n1") == []


def test_only_the_newest_generation_counts(book: Ledger) -> None:
    publish(
        book,
        slice_of("old", "p", ["a"], node="n1", generation=1),
        slice_of("new", "p", ["b"], node="n1", generation=2),
    )
    assert on_node(book.snapshot(), "n1") == ["b"]
    book.deleted("ResourceSlice", slice_of("new", "p", ["b"], node="n1", generation=2))
    assert on_node(book.snapshot(), "n1") == ["a"]


def test_a_pool_with_a_device_name_twice_counts_for_nothing(book: Ledger) -> None:
    publish(book, slice_of("s-1", "p", ["a", "a"], node="n1"))
    assert on_node(book.snapshot(), "n1") == []


@pytest.mark.parametrize(
    ("published", "there"),
    [
        ([consuming("a", "1")], ["a"]),
        ([consuming("a", "1", counter_set="other")], []),
        ([consuming("a", "1", counter="other")], []),
    ],
)
def test_a_pool_whose_devices_take_unknown_counters_counts_for_nothing(
    book: Ledger, published: list[object], there: list[str]
) -> None:
    publish(
        book,
        slice_of("s-0", "p", count=2, node="n1", shared_counters=counters("4")),
        slice_of("s-1", "p", published, node="n1", count=2),  # type: ignore[arg-type]  # devices
    )
    assert on_node(book.snapshot(), "n1") == there


def test_a_counter_set_twice_makes_a_pool_invalid(book: Ledger) -> None:
    publish(book, slice_of("s-0", "p", count=3, node="n1", shared_counters=counters("4")))
    publish(book, slice_of("s-1", "p", count=3, node="n1", shared_counters=counters("4")))
    publish(book, slice_of("s-2", "p", ["a"], node="n1", count=3))
    assert on_node(book.snapshot(), "n1") == []


def test_a_slice_moves_between_pools(book: Ledger) -> None:
    publish(book, slice_of("s", "p", ["a"], node="n1"), slice_of("s", "q", ["a"], node="n2"))
    assert (on_node(book.snapshot(), "n1"), on_node(book.snapshot(), "n2")) == ([], ["a"])


def test_a_pool_moves_between_nodes(book: Ledger) -> None:
    publish(book, slice_of("s", "p", ["a"], node="n1"), slice_of("s", "p", ["a"], node="n2"))
    assert (on_node(book.snapshot(), "n1"), on_node(book.snapshot(), "n2")) == ([], ["a"])


def test_a_pool_of_two_nodes_is_wide(book: Ledger) -> None:
    publish(
        book,
        slice_of("s-1", "p", ["a"], node="n1", count=2),
        slice_of("s-2", "p", ["b"], node="n2", count=2),
    )
    topology = book.snapshot().topology
    assert [pool.key.pool for pool in topology.wide] == ["p"]
    assert [topology.table.ids[row].device for row in topology.wide_rows.tolist()] == ["a", "b"]
    assert on_node(book.snapshot(), "n1") == []


def test_a_wide_pool_keeps_devices_of_an_older_generation(book: Ledger) -> None:
    """A node that does not see the newest generation may still use them."""
    publish(book, slice_of("old", "p", ["a"], node="n1", generation=1))
    publish(book, slice_of("new", "p", ["b"], node="n2", generation=2))
    topology = book.snapshot().topology
    assert [topology.table.ids[row].device for row in topology.wide_rows.tolist()] == ["b", "a"]


def test_a_device_that_comes_back_is_taken_still(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    publish(book, slice_of("s", "p", ["a", "b"], node="n1"), slice_of("s", "p", ["b"], node="n1"))
    publish(book, slice_of("s", "p", ["a", "b"], node="n1"))
    assert is_taken(book.snapshot(), "p", "a") == (True, False)
    assert is_taken(book.snapshot(), "p", "b") == (False, False)


def test_nodes_with_like_pools_have_one_shape(book: Ledger) -> None:
    publish(book, slice_of("s-1", "p", ["a", "b"], node="n1"), slice_of("s-2", "q", ["c", "d"], node="n2"))
    shapes = book.snapshot().topology.pools_shape.tolist()
    assert shapes[0] == shapes[1] != 0


def rule(name: str, **selector: str) -> DeviceTaintRule:
    taint = DeviceTaint("k", name, "NoSchedule")
    return DeviceTaintRule(ObjectMeta(name), DeviceTaintRuleSpec(DeviceTaintSelector(**selector), taint))


def taints(ledger: Ledger, pool: str, name: str) -> list[str]:
    topology = ledger.snapshot().topology
    found = [
        topology.table.devices[row]
        for row in topology.order.tolist()
        if topology.table.ids[row][1:] == (pool, name)
    ]
    return [taint.value for taint in found[0].taints or ()]


def test_taint_rules_taint_what_they_select_and_nothing_else(book: Ledger) -> None:
    publish(book, slice_of("s-1", "p", ["a", "b"], node="n1"), slice_of("s-2", "q", ["a"], node="n2"))
    book.upserted("DeviceTaintRule", rule("r2", driver=DRIVER))
    book.upserted("DeviceTaintRule", rule("r1", pool="p", device="a"))
    assert (taints(book, "p", "a"), taints(book, "p", "b"), taints(book, "q", "a")) == (
        ["r1", "r2"],
        ["r2"],
        ["r2"],
    )
    book.deleted("DeviceTaintRule", rule("r2", driver=DRIVER))
    assert (taints(book, "p", "a"), taints(book, "q", "a")) == (["r1"], [])


def test_a_taint_rule_without_a_selector_taints_nothing(book: Ledger) -> None:
    publish(book, slice_of("s-1", "p", ["a"], node="n1"))
    book.upserted("DeviceTaintRule", DeviceTaintRule(ObjectMeta("r"), DeviceTaintRuleSpec()))
    assert taints(book, "p", "a") == []


def test_drivers_that_are_no_accelerators_do_not_mark_a_node(book: Ledger) -> None:
    publish(book, slice_of("s-1", "p", ["a"], node="n1", driver="nic.example.com"))
    publish(book, slice_of("s-2", "q", ["a"], node="n2"))
    assert book.snapshot().topology.accelerator.tolist() == [False, True]
