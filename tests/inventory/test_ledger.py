"""The ledger: lists, names used again, objects that can't be read, and what observers hear."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from extender.api.core import ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus
from extender.api.meta import ObjectMeta
from extender.api.policy import PodDisruptionBudget
from extender.api.resource import ResourceClaim
from extender.inventory.ledger import Ledger
from extender.inventory.pods import PodRecord
from extender.model.errors import WireError
from tests.inventory.objects import (
    GPU,
    Unread,
    amount,
    claim,
    described,
    fresh,
    is_taken,
    node,
    on_node,
    pod,
    result,
    slice_of,
    unread,
)


@pytest.fixture
def book() -> Ledger:
    ledger = fresh()
    ledger.replaced("Node", [node("n1", {GPU: "8"}), node("n2")], [])
    ledger.replaced("ResourceSlice", [slice_of("s", "p", ["a", "b"], node="n1")], [])
    return ledger


def test_a_snapshot_is_the_same_object_until_something_changes(book: Ledger) -> None:
    before = book.snapshot()
    assert book.snapshot() is before
    book.upserted("Pod", pod("q"))
    assert book.snapshot() is not before
    assert book.snapshot().generation > before.generation


def test_the_columns_of_a_snapshot_can_not_be_written(book: Ledger) -> None:
    snapshot = book.snapshot()
    with pytest.raises(ValueError, match="read-only"):
        snapshot.occupancy.taken[0] = True
    with pytest.raises(ValueError, match="read-only"):
        snapshot.nodes.used["cpu"][0] = 1


def test_topology_outlives_claims_and_pods(book: Ledger) -> None:
    before = book.snapshot().topology
    book.upserted("Pod", pod("q", node="n1"))
    book.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    book.upserted("Node", node("n2", {"cpu": "16"}))
    assert book.snapshot().topology is before


def test_a_change_of_a_slice_shares_names_and_order_of_everything_else(book: Ledger) -> None:
    before = book.snapshot().topology
    book.upserted("ResourceSlice", slice_of("s", "p", ["a", "c"], node="n1"))
    after = book.snapshot().topology
    assert (after.names, after.slot_of, after.nodes, after.wide) == (
        before.names,
        before.slot_of,
        before.nodes,
        before.wide,
    )
    assert after.names is before.names
    assert after.slot_of is before.slot_of


def test_a_node_condition_is_seen_without_a_new_topology(book: Ledger) -> None:
    topology = book.snapshot().topology
    changed = node("n1", {GPU: "4"})
    book.upserted("Node", changed)
    snapshot = book.snapshot()
    assert snapshot.topology is topology
    assert snapshot.nodes.objects[topology.slot_of["n1"]] is changed
    assert amount(snapshot, "n1", GPU) == (4000, 0)


def test_a_free_slot_goes_to_the_next_node_with_nothing_left_in_it(book: Ledger) -> None:
    book.upserted("Pod", pod("q", node="n1", requests={GPU: "3"}))
    slot = book.snapshot().topology.slot_of["n1"]
    book.deleted("Node", node("n1"))
    book.upserted("Node", node("n3"))
    snapshot = book.snapshot()
    assert snapshot.topology.slot_of == {"n3": slot, "n2": 1}
    assert amount(snapshot, "n3", GPU) == (0, 0)
    assert on_node(snapshot, "n3") == []


def test_a_node_that_comes_back_finds_its_pods_and_devices(book: Ledger) -> None:
    book.upserted("Pod", pod("q", node="n1", requests={GPU: "3"}))
    before = described(book.snapshot())
    book.deleted("Node", node("n1"))
    book.upserted("Node", node("n1", {GPU: "8"}))
    assert described(book.snapshot()) == before


def test_a_pod_counts_on_a_node_that_is_not_known_yet() -> None:
    ledger = fresh()
    ledger.upserted("Pod", pod("q", node="n1", requests={GPU: "3"}))
    ledger.upserted("Node", node("n1", {GPU: "8"}))
    assert amount(ledger.snapshot(), "n1", GPU) == (8000, 3000)


def test_a6_a_deleted_pod_whose_event_was_lost_is_dropped_by_the_next_list(book: Ledger) -> None:
    book.upserted("Pod", pod("q", node="n1", requests={GPU: "8"}))
    book.replaced("Pod", [], [])
    assert amount(book.snapshot(), "n1", GPU) == (8000, 0)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a6_a_finished_pod_holds_nothing(book: Ledger, phase: str) -> None:
    book.upserted("Pod", pod("q", node="n1", requests={GPU: "8"}))
    book.upserted("Pod", pod("q", node="n1", requests={GPU: "8"}, phase=phase))
    assert amount(book.snapshot(), "n1", GPU) == (8000, 0)
    assert amount(book.snapshot(), "n1", "pods")[1] == 0


def test_a15_a_pod_made_again_under_its_name_takes_the_place_of_the_old_one(book: Ledger) -> None:
    book.upserted("Pod", pod("q", uid="old", node="n1", requests={GPU: "3"}))
    book.upserted("Pod", pod("q", uid="new", node="n2", requests={GPU: "1"}))
    book.deleted("Pod", pod("q", uid="old"))
    snapshot = book.snapshot()
    assert (amount(snapshot, "n1", GPU), amount(snapshot, "n2", GPU)) == ((8000, 0), (0, 1000))
    found = snapshot.pod_named("ns", "q")
    assert found is not None
    assert (found.metadata.uid, snapshot.pod("old")) == ("new", None)


def test_extended_resources_that_a_claim_backs_are_not_counted(book: Ledger) -> None:
    backed = pod("q", node="n1", requests={GPU: "2", "other.com/x": "1"})
    special = PodExtendedResourceClaimStatus("made", [ContainerExtendedResourceRequest("main", GPU, "r")])
    book.upserted(
        "Pod", replace(backed, status=replace(backed.status, extended_resource_claim_status=special))
    )
    assert amount(book.snapshot(), "n1", GPU) == (8000, 0)
    assert amount(book.snapshot(), "n1", "other.com/x") == (0, 1000)


def test_a_list_leaves_unchanged_objects_alone() -> None:
    same = claim("c", [result("p", "a")], version="7")
    heard: list[str] = []
    ledger = Ledger((), [Listener(heard)])
    ledger.replaced("ResourceClaim", [same], [])
    ledger.replaced("ResourceClaim", [same], [])
    assert heard == ["allocated c"]


def test_kinds_without_a_table_are_kept_whole(book: Ledger) -> None:
    budget = PodDisruptionBudget(metadata=ObjectMeta("b", "ns"))
    book.upserted("PodDisruptionBudget", budget)
    assert book.counts()["PodDisruptionBudget"] == 1
    book.replaced("PodDisruptionBudget", [], [])
    assert book.counts()["PodDisruptionBudget"] == 0


class Listener:
    def __init__(self, heard: list[str]) -> None:
        self.heard = heard

    def pod_bound(self, record: PodRecord) -> None:
        self.heard.append(f"bound {record.key.name} to {record.node}")

    def pod_gone(self, record: PodRecord) -> None:
        self.heard.append(f"gone {record.uid}")

    def claim_allocated(self, claim: ResourceClaim) -> None:
        self.heard.append(f"allocated {claim.metadata.name}")


def test_observers_hear_each_thing_once() -> None:
    heard: list[str] = []
    ledger = Ledger((), [Listener(heard)])
    ledger.upserted("Pod", pod("q"))
    for _ in range(2):
        ledger.upserted("Pod", pod("q", node="n1"))
        ledger.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    ledger.upserted("Pod", pod("q", uid="again"))
    ledger.deleted("Pod", pod("q", uid="again"))
    assert heard == ["bound q to n1", "allocated c", "gone uid-q", "gone again"]


# ---- objects that can't be decoded


@pytest.mark.parametrize(
    ("kind", "obj"),
    [("Node", node("n3", {GPU: "many"})), ("Pod", pod("q", node="n1", requests={GPU: "some"}))],
)
def test_a_bad_quantity_is_named_and_changes_nothing(book: Ledger, kind: str, obj: Any) -> None:
    before = described(book.snapshot())
    with pytest.raises(WireError, match=f"{kind} .*{obj.metadata.name}"):
        book.upserted(kind, obj)
    assert described(book.snapshot()) == before


def test_a_bad_quantity_in_a_list_spoils_only_its_object(book: Ledger) -> None:
    bad = pod("bad", node="n1", requests={GPU: "some"})
    book.replaced("Pod", [bad, pod("good", node="n1", requests={GPU: "1"})], [])
    assert amount(book.snapshot(), "n1", GPU) == (8000, 1000)
    assert book.unreadable == {"Pod": 1}


BROKEN: Any = {"a": "word where a number belongs"}


def test_the_devices_of_an_unreadable_claim_are_taken(book: Ledger) -> None:
    shared = claim("c", [result("p", "a", share_id="s", admin_access=True), result("p", "b")])
    book.undecodable("ResourceClaim", unread(shared, spec=BROKEN))
    assert is_taken(book.snapshot(), "p", "a") == (True, False)
    assert is_taken(book.snapshot(), "p", "b") == (True, False)
    assert book.unreadable == {"ResourceClaim": 1}


def test_a_claim_that_becomes_unreadable_frees_nothing(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    broken = unread(claim("c", [result("p", "a")]), status__allocation={"devices": {"results": "none"}})
    book.undecodable("ResourceClaim", broken)
    assert is_taken(book.snapshot(), "p", "a") == (True, False)


def test_an_unreadable_claim_in_a_list_counts_as_present(book: Ledger) -> None:
    held = claim("c", [result("p", "a")], version="1")
    book.replaced("ResourceClaim", [held], [])
    book.replaced("ResourceClaim", [], [unread(held, spec=BROKEN)])
    assert is_taken(book.snapshot(), "p", "a") == (True, False)
    book.replaced("ResourceClaim", [], [])
    assert is_taken(book.snapshot(), "p", "a") == (False, False)
    assert book.unreadable == {}


def test_an_object_that_can_be_read_again_is_no_longer_counted(book: Ledger) -> None:
    held = claim("c", [result("p", "a")], version="1")
    for _ in range(3):
        book.undecodable("ResourceClaim", unread(held, spec=BROKEN))
    assert book.unreadable == {"ResourceClaim": 1}
    book.upserted("ResourceClaim", held)
    assert book.unreadable == {}
    book.undecodable("ResourceClaim", unread(held, spec=BROKEN))
    book.deleted("ResourceClaim", held)
    assert book.unreadable == {}


def test_an_unreadable_pod_holds_its_nodes_resources(book: Ledger) -> None:
    held = pod("q", node="n1")
    asked = [{"resources": {"limits": {GPU: "2", "cpu": BROKEN}}}]
    book.undecodable("Pod", unread(held, spec__containers=asked))
    assert amount(book.snapshot(), "n1", GPU) == (8000, 2000)


def test_an_unreadable_pod_that_has_finished_holds_nothing(book: Ledger) -> None:
    held = pod("q", node="n1", phase="Succeeded")
    book.undecodable("Pod", unread(held, spec__containers=[{"resources": {"limits": {GPU: "2"}}}]))
    assert amount(book.snapshot(), "n1", GPU) == (8000, 0)


def test_an_unreadable_slice_makes_its_devices_unavailable(book: Ledger) -> None:
    book.undecodable("ResourceSlice", unread(slice_of("s", "p", ["a"], node="n1"), spec__devices=BROKEN))
    assert on_node(book.snapshot(), "n1") == []


def test_an_unreadable_node_stays_as_it_was(book: Ledger) -> None:
    book.replaced("Node", [node("n2")], [unread(node("n1"), status=BROKEN)])
    assert amount(book.snapshot(), "n1", GPU) == (8000, 0)


@pytest.mark.parametrize("kind", ["ResourceClaim", "Pod", "ResourceSlice", "Node", "Namespace", "Workload"])
@pytest.mark.parametrize(
    "raw", [b"", b"\xff\xfe", b"[]", b"null", b'{"metadata": 5}', b'{"metadata": {"name": 1}}']
)
def test_bytes_of_any_kind_are_counted_and_change_nothing(book: Ledger, kind: str, raw: bytes) -> None:
    before = described(book.snapshot())
    book.undecodable(kind, Unread(raw))
    assert described(book.snapshot()) == before
    assert book.unreadable == {kind: 1}
