"""In flight: every transition of the drawn state machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extender.api.core import PodSchedulingGroup
from extender.inventory.inflight import GONE_KEPT, Assumption, InFlight, nodes_at
from extender.inventory.ledger import Ledger
from tests.inventory.objects import GPU, claim, device_class, fresh, pod, result

NODES = ("n1", "n2", "n3")


@pytest.fixture
def book() -> Ledger:
    return fresh()


def offer(ledger: Ledger, *nodes: str, name: str = "q", **fields: Any) -> None:
    asked = pod(name, **fields)
    ledger.upserted("Pod", asked)
    ledger.in_flight.offered(asked, nodes or NODES, 1.0)


def covered(flights: InFlight) -> set[str]:
    return {name for name in (*NODES, "elsewhere") if list(flights.on(name))}


def test_a_filter_reply_puts_a_pod_in_flight_on_its_nodes(book: Ledger) -> None:
    offer(book, "n1", "n2")
    assert covered(book.in_flight) == {"n1", "n2"}


def test_an_empty_reply_ends_the_flight(book: Ledger) -> None:
    offer(book)
    book.in_flight.offered(pod("q"), (), 2.0)
    assert covered(book.in_flight) == set()


def test_a_newer_call_replaces_the_offers(book: Ledger) -> None:
    offer(book, "n1")
    book.in_flight.offered(pod("q"), ("n2",), 2.0)
    assert covered(book.in_flight) == {"n2"}


def test_offers_to_a_member_of_a_group_add_up(book: Ledger) -> None:
    group = PodSchedulingGroup("group")
    offer(book, "n1", scheduling_group=group)
    book.in_flight.offered(pod("q", scheduling_group=group), ("n2",), 2.0)
    book.in_flight.offered(pod("q", scheduling_group=group), (), 3.0)
    assert covered(book.in_flight) == {"n1", "n2"}


def test_a_pod_found_at_start_is_in_flight_everywhere_until_it_is_asked_for(book: Ledger) -> None:
    book.in_flight.found(pod("q"), 1.0)
    assert covered(book.in_flight) == {*NODES, "elsewhere"}
    book.in_flight.offered(pod("q"), ("n1",), 2.0)
    assert covered(book.in_flight) == {"n1"}


def test_found_does_not_widen_what_was_offered(book: Ledger) -> None:
    offer(book, "n1")
    book.in_flight.found(pod("q"), 2.0)
    assert covered(book.in_flight) == {"n1"}


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({"node": "n1"}, id="bound"),
        pytest.param({"phase": "Failed"}, id="terminal"),
        pytest.param({"failed": "no room"}, id="PodScheduled changed"),
    ],
)
def test_an_event_ends_a_flight(book: Ledger, event: dict[str, Any]) -> None:
    offer(book)
    book.upserted("Pod", pod("q", **event))
    assert len(book.in_flight) == 0


def test_a_deleted_pod_is_not_in_flight(book: Ledger) -> None:
    offer(book)
    book.deleted("Pod", pod("q"))
    assert len(book.in_flight) == 0


def test_a_reply_about_a_pod_that_is_gone_already_begins_nothing(book: Ledger) -> None:
    gone = pod("late")
    book.upserted("Pod", gone)
    book.deleted("Pod", gone)
    book.in_flight.offered(gone, ["n1", "n2"], 0.0)
    book.in_flight.assume("uid-late", Assumption("n1", (0,), 0.0))
    assert not book.in_flight.has("uid-late")


def test_the_memory_of_pods_that_are_gone_is_bounded() -> None:
    flights = InFlight()
    for number in range(GONE_KEPT + 1):
        flights.gone(f"uid-{number}")
    flights.offered(pod("0"), ["n1"], 0.0)
    flights.offered(pod("1"), ["n1"], 0.0)
    assert (flights.has("uid-0"), flights.has("uid-1")) == (True, False)


def test_a_new_pod_of_the_same_name_ends_the_flight_of_the_old_one(book: Ledger) -> None:
    offer(book)
    book.upserted("Pod", pod("q", uid="another"))
    assert len(book.in_flight) == 0


def test_an_update_that_says_nothing_of_scheduling_leaves_a_flight(book: Ledger) -> None:
    offer(book, failed="earlier")
    book.upserted("Pod", pod("q", failed="earlier", requests={"cpu": "2"}))
    assert covered(book.in_flight) == set(NODES)


def test_a_condition_that_the_request_had_already_is_no_new_failure(book: Ledger) -> None:
    book.upserted("Pod", pod("q"))
    book.in_flight.offered(pod("q", failed="earlier"), NODES, 1.0)
    book.upserted("Pod", pod("q", failed="earlier"))
    assert covered(book.in_flight) == set(NODES)


def test_events_older_than_the_request_say_nothing(book: Ledger) -> None:
    """The scheduler's watch may be ahead of ours by several changes."""
    book.upserted("Pod", pod("q", version="10", nominated="n2"))
    book.in_flight.offered(pod("q", version="30", failed="third"), NODES, 1.0)
    book.upserted("Pod", pod("q", version="20", failed="second"))
    book.upserted("Pod", pod("q", version="30", failed="third"))
    assert covered(book.in_flight) == set(NODES)
    book.upserted("Pod", pod("q", version="40", failed="fourth"))
    assert covered(book.in_flight) == set()


def test_a_nomination_narrows_and_its_end_ends(book: Ledger) -> None:
    offer(book)
    book.upserted("Pod", pod("q", nominated="n2"))
    assert covered(book.in_flight) == {"n2"}
    book.upserted("Pod", pod("q"))
    assert covered(book.in_flight) == set()


def test_a_nomination_that_the_request_had_already_narrows_nothing(book: Ledger) -> None:
    offer(book, nominated="n2")
    book.upserted("Pod", pod("q", nominated="n2", requests={"cpu": "2"}))
    assert covered(book.in_flight) == set(NODES)


def test_a_nomination_elsewhere_ends_an_assumption(book: Ledger) -> None:
    offer(book)
    book.in_flight.assume("uid-q", Assumption("n1", (3,), 1.0))
    book.upserted("Pod", pod("q", nominated="n2"))
    assert book.in_flight.assumptions(1.0) == []


def test_the_allocation_of_the_last_claim_ends_a_flight(book: Ledger) -> None:
    offer(book, claims=("c1",), templates={"t": "c2"})
    book.upserted("ResourceClaim", claim("c1"))
    book.upserted("ResourceClaim", claim("c2", [result("p", "a")], owner="uid-q"))
    assert covered(book.in_flight) == set(NODES)
    book.upserted("ResourceClaim", claim("c1", [result("p", "b")]))
    assert covered(book.in_flight) == set()


def test_a_claim_of_a_template_that_is_not_made_yet_keeps_a_flight(book: Ledger) -> None:
    offer(book, claims=("c1",), templates={"t": "pending"})
    book.upserted("ResourceClaim", claim("c1", [result("p", "b")]))
    assert covered(book.in_flight) == set(NODES)


def test_an_entry_that_needs_no_claim_does_not_keep_a_flight(book: Ledger) -> None:
    offer(book, claims=("c1",), templates={"t": None})
    book.upserted("ResourceClaim", claim("c1", [result("p", "b")]))
    assert covered(book.in_flight) == set()


def test_a_claim_for_extended_resources_that_is_not_made_yet_keeps_a_flight(book: Ledger) -> None:
    book.upserted("DeviceClass", device_class("gpu", resource=GPU))
    offer(book, claims=("c1",), requests={GPU: "1"})
    book.upserted("ResourceClaim", claim("c1", [result("p", "b")]))
    assert covered(book.in_flight) == set(NODES)


def test_a_claim_of_another_namespace_or_pod_ends_nothing(book: Ledger) -> None:
    offer(book, claims=("c1",))
    book.upserted("ResourceClaim", claim("c2", [result("p", "b")], owner="uid-q"))
    assert covered(book.in_flight) == set(NODES)


def test_a_pod_that_no_list_knows_is_gone_after_the_second_one(book: Ledger) -> None:
    """It may be newer than the first list; the second one began after the first had arrived."""
    book.in_flight.offered(pod("q"), NODES, 1.0)
    book.replaced("Pod", [], [])
    assert covered(book.in_flight) == set(NODES)
    book.replaced("Pod", [], [])
    assert covered(book.in_flight) == set()


def test_a_pod_that_vanished_between_lists_is_not_in_flight(book: Ledger) -> None:
    offer(book)
    book.replaced("Pod", [], [])
    assert covered(book.in_flight) == set()


def test_flights_have_no_end_by_time_assumptions_do() -> None:
    flights = InFlight()
    flights.offered(pod("q"), NODES, 0.0)
    flights.assume("uid-q", Assumption("n1", (1,), 0.0))
    assert len(flights.assumptions(10.0)) == 1
    assert flights.assumptions(10.1) == []
    assert covered(flights) == set(NODES)


def test_a_newer_call_ends_the_assumption_of_the_older_one() -> None:
    flights = InFlight()
    flights.assume("uid-q", Assumption("n1", (1,), 0.0))
    flights.offered(pod("q"), NODES, 1.0)
    assert flights.assumptions(1.0) == []


def test_nodes_by_slot_read_like_their_names() -> None:
    names, slot_of = ["n1", "", "n3"], {"n1": 0, "n3": 2}
    nodes = nodes_at(np.array([2, 0], np.int32), ["n3", "n1"], names, slot_of)
    assert (list(nodes), len(nodes)) == (["n3", "n1"], 2)
    assert "n1" in nodes
    assert "n2" not in nodes


def test_unknown_nodes_keep_their_names() -> None:
    nodes = nodes_at(np.array([-1, 0], np.int32), ["new", "n1"], ["n1"], {"n1": 0})
    assert list(nodes) == ["new", "n1"]
