"""Predictions: columns, the search by shape and one search a node all say the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from extender.allocator.columns import SelectorColumns
from extender.allocator.demand import demand_of
from extender.allocator.predict import Predictor
from extender.allocator.prediction import Predictions, Unpredicted
from extender.allocator.shapes import ShapeSearch
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceID
from extender.selectors import Environment
from tests.allocator.fleets import FEATURES, NODES, STEPS, Fleet, assumed_rows, fleets, slowly
from tests.inventory.objects import GPU, claim, device_class, fresh, node, pod, result, slice_of

REFUSALS = {Unpredicted.NO_FIT, Unpredicted.FAILED}


def predictor(selectors: SelectorColumns) -> Predictor:
    return Predictor(selectors, ShapeSearch(selectors, selectors.relevant, FEATURES, steps=STEPS))


def devices(predictions: Predictions, index: int) -> tuple[DeviceID, ...]:
    ids = predictions.topology.table.ids
    return tuple(ids[row] for row in predictions.rows(index))


def predicted(fleet: Fleet, snapshot: Snapshot, made: Predictor) -> Predictions:
    slots = np.array([snapshot.topology.slot_of[name] for name in NODES], np.int32)
    demand = demand_of(fleet.pod, snapshot)
    return made.predict(demand, slots, snapshot, assumed_rows(fleet, snapshot))


def agree(fleet: Fleet, predictions: Predictions, snapshot: Snapshot) -> None:
    for index, (name, expected) in enumerate(slowly(fleet, snapshot)):
        reason = predictions.reason(index)
        if isinstance(expected, Unpredicted):
            # Counting does not tell "no place" from "no place, and a pool is invalid".
            kinds = {reason, expected}
            assert reason is expected or kinds <= REFUSALS, (name, reason, expected)
        else:
            assert (reason, devices(predictions, index)) == (None, expected), name


@given(fleets())
@settings(max_examples=200)
def test_predictions_are_what_a_search_of_each_node_finds(fleet: Fleet) -> None:
    snapshot = fleet.ledger.snapshot()
    predictions = predicted(fleet, snapshot, predictor(SelectorColumns(Environment())))
    event(f"{int((predictions.status == 0).sum())} nodes predicted")
    agree(fleet, predictions, snapshot)


@given(st.lists(fleets(), min_size=2, max_size=4))
@settings(max_examples=60)
def test_what_is_remembered_from_other_states_changes_no_prediction(made: Sequence[Fleet]) -> None:
    """One predictor sees the ledger go from state to state; shapes and columns that it keeps stay right."""
    one = predictor(SelectorColumns(Environment()))
    ledger = made[0].ledger
    for fleet in made:
        for kind in ("Node", "ResourceSlice", "DeviceClass", "ResourceClaim"):
            ledger.replaced(kind, fleet.ledger._known(kind), [])
        moved = Fleet(ledger, fleet.pod, fleet.claims, fleet.assumed)
        snapshot = ledger.snapshot()
        agree(moved, predicted(moved, snapshot, one), snapshot)


def single(**claims: Sequence[str]) -> tuple[Fleet, Snapshot]:
    ledger = fresh()
    ledger.replaced("Node", [node(name) for name in NODES], [])
    ledger.replaced("ResourceSlice", [slice_of(f"s-{n}", n, ["a", "b"], node=n) for n in NODES], [])
    ledger.replaced("DeviceClass", [device_class("gpu", resource=GPU)], [])
    asked = [claim(name) for name in claims]
    ledger.replaced("ResourceClaim", asked, [])
    return Fleet(ledger, pod("q", claims=list(claims)), asked, ()), ledger.snapshot()


def test_an_unknown_node_and_an_unknown_claim_have_their_reasons() -> None:
    fleet, snapshot = single(c=())
    one = predictor(SelectorColumns(Environment()))
    slots = np.array([-1, 0], np.int32)
    predictions = one.predict(demand_of(fleet.pod, snapshot), slots, snapshot)
    assert [predictions.reason(i) for i in range(2)] == [Unpredicted.NODE_UNKNOWN, None]
    missing = one.predict(demand_of(pod("q", claims=["gone"]), snapshot), slots, snapshot)
    assert [missing.reason(i) for i in range(2)] == [Unpredicted.CLAIM_UNKNOWN] * 2


def test_the_devices_of_an_allocated_claim_are_named_and_only_the_rest_is_sought() -> None:
    fleet, _ = single(c=(), d=())
    fleet.ledger.upserted("ResourceClaim", claim("c", [result("n0", "a")]))
    snapshot = fleet.ledger.snapshot()
    predictions = predicted(fleet, snapshot, predictor(SelectorColumns(Environment())))
    picks = predictions.picks(0)
    assert [(pick.claim, snapshot.topology.table.ids[pick.row].device) for pick in picks] == [
        ("c", "a"),
        ("d", "b"),
    ]


def test_extended_resources_come_from_classes_or_are_left_to_the_device_plugin() -> None:
    fleet, _ = single(c=())
    fleet.ledger.upserted("Node", node("n3", {GPU: "8"}))
    snapshot = fleet.ledger.snapshot()
    asking = Fleet(fleet.ledger, pod("q", requests={GPU: "2"}), (), ())
    predictions = predicted(asking, snapshot, predictor(SelectorColumns(Environment())))
    assert [predictions.reason(i) for i in range(4)] == [None, None, None, Unpredicted.COUNT_ONLY]
    assert [one.device for one in devices(predictions, 0)] == ["a", "b"]
    assert {pick.claim for pick in predictions.picks(0)} == {"<extended-resources>"}


def test_claims_beside_a_plugins_resource_are_predicted() -> None:
    fleet, _ = single(c=())
    fleet.ledger.upserted("Node", node("n0", {"other.com/x": "8"}))
    snapshot = fleet.ledger.snapshot()
    both = Fleet(fleet.ledger, pod("q", claims=["c"], requests={"other.com/x": "1"}), (), ())
    predictions = predicted(both, snapshot, predictor(SelectorColumns(Environment())))
    assert (predictions.reason(0), [one.device for one in devices(predictions, 0)]) == (None, ["a"])
    alone = Fleet(fleet.ledger, pod("q", requests={"other.com/x": "1"}), (), ())
    predictions = predicted(alone, snapshot, predictor(SelectorColumns(Environment())))
    assert predictions.reason(0) is Unpredicted.COUNT_ONLY


@given(fleets())
@settings(max_examples=100)
def test_the_devices_of_all_nodes_at_once_are_those_of_each(fleet: Fleet) -> None:
    snapshot = fleet.ledger.snapshot()
    predictions = predicted(fleet, snapshot, predictor(SelectorColumns(Environment())))
    predicted_ones = np.nonzero(predictions.predicted)[0]
    by_slot, among = predictions.by_slot(), predictions.devices(predicted_ones)
    assert np.array_equal(by_slot[:, predictions.slots[predicted_ones]], among)
    for index, named in zip(predicted_ones.tolist(), among.T, strict=True):
        assert sorted(named[named >= 0].tolist()) == sorted(predictions.rows(index))
