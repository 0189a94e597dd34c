"""The decision record is bounded, keyed by pod UID, and judges predictions once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.observability.decisions import DecisionRing
from extender.verbs.views import DecisionView, PredictedDevice

GPU0 = PredictedDevice("claim", "gpu", "gpu.example.com/n1/gpu-0")
GPU1 = PredictedDevice("claim", "gpu", "gpu.example.com/n1/gpu-1")


def decision(uid: str, name: str = "pod") -> DecisionView:
    return DecisionView(uid, "team", name, 1.0, "filter", 10, 7)


def ring(*uids: str, size: int = 10) -> DecisionRing:
    made = DecisionRing(size)
    for uid in uids:
        made.record(decision(uid), lambda _node: (GPU0, GPU1))
    return made


def test_the_newest_come_first() -> None:
    assert [d.pod_uid for d in ring("a", "b", "c").newest(2)] == ["c", "b"]


def test_a_newer_answer_replaces_the_older_and_comes_first() -> None:
    held = ring("a", "b")
    held.record(replace(decision("a"), passed=1))
    assert [(d.pod_uid, d.passed) for d in held.newest(10)] == [("a", 1), ("b", 7)]


def test_the_pod_answered_longest_ago_goes_first() -> None:
    held = ring("a", "b", "c", size=2)
    assert [d.pod_uid for d in held.newest(10)] == ["c", "b"]


@pytest.mark.parametrize("pod", ["uid-1", "one", "team/one"])
def test_a_pod_is_found_by_uid_name_and_namespaced_name(pod: str) -> None:
    held = DecisionRing(10)
    held.record(decision("uid-1", "one"))
    held.record(decision("uid-2", "two"))
    assert [d.pod_uid for d in held.newest(10, pod)] == ["uid-1"]


def test_the_devices_named_for_the_node_in_any_order_are_right() -> None:
    held = ring("a")
    assert held.settle("a", "n1", [GPU1, GPU0]) == "right"
    settled = held.get("a")
    assert settled is not None
    assert (settled.node, settled.predicted, settled.outcome) == ("n1", (GPU0, GPU1), "right")


def test_other_devices_are_wrong() -> None:
    assert ring("a").settle("a", "n1", [GPU0]) == "wrong"


def test_a_node_without_a_prediction_is_unpredicted_with_its_reason() -> None:
    held = DecisionRing(10)
    held.record(decision("a"), lambda _node: "GaveUp")
    assert held.settle("a", "n1", [GPU0]) == "unpredicted"
    settled = held.get("a")
    assert settled is not None
    assert settled.unpredicted == "GaveUp"


def test_the_prediction_is_that_of_the_node_that_was_chosen() -> None:
    held = DecisionRing(10)
    held.record(decision("a"), {"n1": (GPU0,), "n2": (GPU1,)}.__getitem__)
    held.scored("a", "n1", 10)
    assert held.settle("a", "n2", [GPU1]) == "right"


def test_a_prediction_is_judged_once() -> None:
    held = ring("a")
    held.settle("a", "n1", [GPU0, GPU1])
    assert held.settle("a", "n1", [GPU0]) is None


def test_an_unknown_pod_is_not_judged() -> None:
    assert ring().settle("a", "n1", []) is None


def test_the_score_is_that_of_the_last_prioritize() -> None:
    held = ring("a")
    held.scored("a", "n1", 9)
    held.scored("missing", "n1", 9)
    found = held.get("a")
    assert found is not None
    assert (found.node, found.score) == ("n1", 9)


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        DecisionRing(0)


@given(st.lists(st.sampled_from("abcdef")), st.integers(1, 4))
def test_the_ring_holds_the_last_different_pods_and_never_more(uids: list[str], size: int) -> None:
    held = ring(*uids, size=size)
    expected = list(dict.fromkeys(reversed(uids)))[:size]
    assert [d.pod_uid for d in held.newest(100)] == expected
    assert len(held) == len(expected)
