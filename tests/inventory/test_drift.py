"""Drift: what a watch lost is found, and nothing else."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.inventory.drift import Drift, compare
from extender.inventory.ledger import Ledger
from extender.model.ids import ObjectKey
from tests.inventory.objects import GPU, claim, fresh, node, pod, result, slice_of

LISTED: dict[str, list[Any]] = {
    "Node": [node("n1", {GPU: "8"}, resource_version="1"), node("n2", resource_version="2")],
    "ResourceSlice": [slice_of("s", "p", ["a", "b"], node="n1", version="3")],
    "ResourceClaim": [
        claim(
            "c",
            [result("p", "a"), result("p", "b", share_id="s"), result("p", "b", admin_access=True)],
            version="4",
        )
    ],
    "Pod": [pod("q", node="n1", requests={GPU: "2"}, version="5"), pod("late", version="6")],
}


@pytest.fixture
def book() -> Ledger:
    ledger = fresh()
    for kind, objects in LISTED.items():
        ledger.replaced(kind, objects, [])
    return ledger


def finished(steps: Generator[None, None, Mapping[str, Drift]]) -> Mapping[str, Drift]:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: Mapping[str, Drift] = stop.value
            return found


def keys(*names: str, namespace: str = "ns") -> frozenset[ObjectKey]:
    return frozenset(ObjectKey(namespace, name) for name in names)


def test_a_ledger_that_missed_nothing_has_no_drift(book: Ledger) -> None:
    assert not any(finished(compare(book, LISTED)).values())


def test_a_lost_addition_is_missing(book: Ledger) -> None:
    listed = {**LISTED, "Pod": [*LISTED["Pod"], pod("new", version="9")]}
    assert finished(compare(book, listed))["Pod"] == Drift(missing=keys("new"))


def test_a_lost_deletion_is_extra(book: Ledger) -> None:
    listed = {**LISTED, "Pod": LISTED["Pod"][:1]}
    assert finished(compare(book, listed))["Pod"] == Drift(extra=keys("late"))


def test_a_lost_change_is_different_a_newer_state_is_not(book: Ledger) -> None:
    listed = {**LISTED, "Pod": [LISTED["Pod"][0], pod("late", failed="no room", version="9")]}
    assert finished(compare(book, listed))["Pod"] == Drift(different=keys("late"))
    book.upserted("Pod", pod("late", failed="still none", version="10"))
    assert not finished(compare(book, listed))["Pod"]


def test_a_column_that_contradicts_the_pods_is_named_by_its_node(book: Ledger) -> None:
    book._nodes.use("n2", {GPU: 1000}, 1)
    book._touch()
    assert finished(compare(book, LISTED))["Node"] == Drift(different=keys("n2", namespace=""))


def test_a_holder_that_is_lost_or_left_over_is_named_by_its_claim(book: Ledger) -> None:
    device = next(iter(book.snapshot().holders))
    book._claims.holders.pop(device)
    book._touch()
    assert finished(compare(book, LISTED))["ResourceClaim"] == Drift(different=keys("c"))


def test_an_occupancy_that_contradicts_the_claims_is_named(book: Ledger) -> None:
    book._occupancy._own(0)
    book._occupancy._taken[:] = False
    book._occupancy._view = None
    book._touch()
    assert finished(compare(book, LISTED))["ResourceClaim"] == Drift(different=keys("c"))


def test_events_while_it_is_compared_are_not_compared(book: Ledger) -> None:
    steps = compare(book, LISTED)
    next(steps)
    book.replaced("Pod", [], [])
    book.replaced("ResourceClaim", [], [])
    assert not any(finished(steps).values())


def test_what_two_checks_find_is_drift() -> None:
    first = Drift(missing=keys("a", "b"), extra=keys("c"))
    second = Drift(missing=keys("b"), different=keys("c"))
    assert first & second == Drift(missing=keys("b"))


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_missing_and_extra_are_the_differences_of_the_sets(ours: set[int], theirs: set[int]) -> None:
    ledger = fresh()
    ledger.replaced("Pod", [pod(f"q{i}") for i in ours], [])
    found = finished(compare(ledger, {"Pod": [pod(f"q{i}") for i in theirs]}))["Pod"]
    assert found == Drift(keys(*(f"q{i}" for i in theirs - ours)), keys(*(f"q{i}" for i in ours - theirs)))


def test_work_is_done_in_slices() -> None:
    pods = [pod(f"q{i}", node="n1") for i in range(2000)]
    ledger = fresh()
    ledger.replaced("Pod", pods, [])
    assert sum(1 for _ in compare(ledger, {"Pod": pods})) >= 20
