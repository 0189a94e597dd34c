"""MemoryHeldOutside: about the predicted device, the declared need, and whoever is no known pod."""

from __future__ import annotations

import pytest

from extender.api.telemetry import Process
from extender.model.reason import Reason
from extender.verbs.filter import FilterAnswer, filter_nodes
from extender.verbs.memory_veto import MEMORY_NEED, Malformed, memory_need
from tests.inventory.objects import claim, pod, result
from tests.verbs.live import GIB, Live, annotated, asking, gpu

FOREIGN = (Process(4711, 75 * GIB),)


@pytest.fixture
def live() -> Live:
    """Two devices on each of two nodes, the first of n0 with a foreign process that holds 75 of 80 GiB."""
    made = Live()
    made.tell_all()
    made.tell("n0", gpu("n0", 0, memory_used=75 * GIB, processes=FOREIGN), gpu("n0", 1))
    return made


def ask(live: Live, need: str, *claims: str) -> FilterAnswer:
    return filter_nodes(live.desk, live.question(asking(*claims, need=need)), enforce=True)


def test_a_pod_that_needs_more_than_is_left_goes_to_the_other_node(live: Live) -> None:
    """Report A15 (Project-HAMi/HAMi#1069): memory held outside the scheduler's view is seen."""
    answer = ask(live, "40Gi")
    assert list(answer.passed) == ["n1"]
    assert list(answer.failed) == ["n0"]  # evicting pods may help, so it is not unresolvable
    assert answer.failed["n0"].startswith("MemoryHeldOutside: ")
    assert answer.detail(0) == (
        "gpu-0: 5.0 GiB attainable, 40.0 GiB needed, 75.0 GiB held by processes of no known pod"
    )


def test_a_small_pod_may_use_that_device(live: Live) -> None:
    assert list(ask(live, "2Gi").passed) == ["n0", "n1"]


def test_a_pod_that_declares_nothing_is_let_through(live: Live) -> None:
    assert list(ask(live, "").passed) == ["n0", "n1"]


def test_the_device_that_the_pod_would_get_counts_not_its_neighbour(live: Live) -> None:
    live.ledger.upserted("ResourceClaim", claim("held", [result("n0", "gpu-0")]))
    assert list(ask(live, "40Gi").passed) == ["n0", "n1"]


def test_every_device_of_a_pod_must_have_enough(live: Live) -> None:
    assert list(ask(live, "40Gi", "c", "d").passed) == ["n1"]


def test_what_known_pods_hold_is_the_allocations_matter(live: Live) -> None:
    mine = (Process(4711, 75 * GIB, "uid-owner"),)
    live.tell("n0", gpu("n0", 0, memory_used=75 * GIB, processes=mine), gpu("n0", 1))
    live.ledger.upserted("Pod", pod("owner", uid="uid-owner", node="n0"))
    assert list(ask(live, "40Gi").passed) == ["n0", "n1"]
    live.ledger.deleted("Pod", pod("owner", uid="uid-owner", node="n0"))
    assert list(ask(live, "40Gi").passed) == ["n1"]


def test_an_old_reading_refuses_nobody(live: Live) -> None:
    live.now += 46
    assert list(ask(live, "40Gi").passed) == ["n0", "n1"]


@pytest.mark.parametrize("text", ["forty", "-1Gi", "0", "40 GB", "", " ", "1e30"])
def test_a_malformed_need_is_named_and_refuses_nobody(live: Live, text: str) -> None:
    asked = annotated(asking(), text)
    assert isinstance(memory_need(asked), Malformed)
    answer = filter_nodes(live.desk, live.question(asked), enforce=True)
    assert list(answer.passed) == ["n0", "n1"]
    assert len(answer.notes) == 1
    assert MEMORY_NEED in answer.notes[0]


def test_the_text_is_the_same_for_every_node_and_pod(live: Live) -> None:
    texts = {ask(live, need).failed["n0"] for need in ("40Gi", "6Gi", "79Gi")}
    assert len(texts) == 1


def test_it_is_only_counted_when_vetoes_are_switched_off(live: Live) -> None:
    answer = filter_nodes(live.desk, live.question(asking(need="40Gi")), enforce=False)
    assert (list(answer.passed), answer.counts) == (["n0", "n1"], {Reason.MEMORY_HELD_OUTSIDE: 1})
