"""The search by shape: what must tell two nodes, or two moments, apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.allocator.columns import SelectorColumns
from extender.allocator.demand import demand_of
from extender.allocator.predict import Predictor
from extender.allocator.prediction import Unpredicted
from extender.allocator.shapes import ShapeSearch
from extender.api.resource import Device
from extender.inventory.ledger import Ledger
from extender.selectors import Environment
from tests.allocator.fleets import FEATURES, STEPS
from tests.inventory.objects import (
    claim,
    consuming,
    counters,
    device,
    device_class,
    fresh,
    node,
    pod,
    result,
    slice_of,
)


class Asked:
    """One predictor that sees the ledger change."""

    def __init__(self, *nodes: str) -> None:
        self.ledger: Ledger = fresh()
        self.ledger.replaced("Node", [node(name) for name in nodes], [])
        self.ledger.replaced("DeviceClass", [device_class("gpu")], [])
        self.ledger.replaced("ResourceClaim", [claim("c")], [])
        selectors = SelectorColumns(Environment())
        search = ShapeSearch(selectors, selectors.relevant, FEATURES, steps=STEPS)
        self.predictor = Predictor(selectors, search)

    def publish(self, name: str, pool: str, devices: Sequence[Device | str] = (), **where: object) -> None:
        self.ledger.upserted("ResourceSlice", slice_of(name, pool, devices, **where))  # type: ignore[arg-type]  # its own

    def devices(self, name: str) -> list[str] | Unpredicted:
        """Devices predicted on a node for one device, or why there are none."""
        snapshot = self.ledger.snapshot()
        slots = np.array([snapshot.topology.slot_of[name]], np.int32)
        found = self.predictor.predict(demand_of(pod("q", claims=["c"]), snapshot), slots, snapshot)
        reason = found.reason(0)
        return reason or [str(snapshot.topology.table.ids[row].device) for row in found.rows(0)]


def test_like_nodes_differ_by_where_their_pool_stands_among_wide_ones() -> None:
    asked = Asked("a", "z")
    for name in ("a", "z"):
        asked.publish(f"s-{name}", name, ["own"], node=name)
    asked.publish("s-m", "m", ["wide"], all_nodes=True)
    assert (asked.devices("a"), asked.devices("z")) == (["own"], ["wide"])


def test_counters_of_a_wide_pool_that_change_are_seen_without_a_change_of_its_devices() -> None:
    asked = Asked("a")
    asked.publish("s-0", "m", all_nodes=True, count=2, shared_counters=counters("1"))
    asked.publish("s-1", "m", [consuming("wide", "2")], all_nodes=True, count=2)
    assert asked.devices("a") is Unpredicted.NO_FIT
    asked.publish("s-0", "m", all_nodes=True, count=2, shared_counters=counters("2"))
    assert asked.devices("a") == ["wide"]


def test_a_node_that_sees_only_the_older_generation_of_a_wide_pool_uses_it() -> None:
    asked = Asked("a", "b")
    asked.publish("old", "m", ["was"], node="a", generation=1)
    asked.publish("new", "m", ["is"], node="b", generation=2)
    assert (asked.devices("a"), asked.devices("b")) == (["was"], ["is"])


def test_a_pool_with_compatibility_groups_does_not_count_without_the_feature() -> None:
    asked = Asked("a")
    asked.publish("s-0", "p", node="a", count=2, shared_counters=counters("4"))
    grouped = consuming("x", "1")
    uses = grouped.consumes_counters
    assert uses is not None
    with_group = type(uses[0])(uses[0].counter_set, uses[0].counters, ["g"])
    asked.publish(
        "s-1", "p", [device("plain"), device("x", consumes_counters=[with_group])], node="a", count=2
    )
    assert asked.devices("a") is Unpredicted.NO_FIT


def test_counters_that_a_held_device_uses_are_gone() -> None:
    asked = Asked("a")
    asked.publish("s-0", "p", node="a", count=2, shared_counters=counters("4"))
    asked.publish(
        "s-1", "p", [consuming("x", "3"), consuming("y", "2"), consuming("z", "1")], node="a", count=2
    )
    assert asked.devices("a") == ["x"]
    asked.ledger.upserted("ResourceClaim", claim("held", [result("p", "x")]))
    assert asked.devices("a") == ["z"]


def test_a_call_searches_no_more_shapes_than_its_budget() -> None:
    asked = Asked("a", "b")
    asked.publish("s-a", "a", [device("m", allow_multiple_allocations=True)], node="a")
    asked.publish("s-b", "b", [device("m", allow_multiple_allocations=True), "n"], node="b")
    selectors = SelectorColumns(Environment())
    search = ShapeSearch(selectors, selectors.relevant, FEATURES, steps=STEPS, budget=1)
    snapshot = asked.ledger.snapshot()
    slots = np.array([0, 1], np.int32)
    found = Predictor(selectors, search).predict(demand_of(pod("q", claims=["c"]), snapshot), slots, snapshot)
    assert [found.reason(i) for i in range(2)] == [None, Unpredicted.GAVE_UP]
