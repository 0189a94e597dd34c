"""Pack, spread and pool, and the bench that weighs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from extender.inventory.snapshot import Snapshot
from extender.model.workload import WorkloadClass
from extender.scoring.bench import Bench
from extender.scoring.candidates import Candidates
from extender.scoring.fullness import Pack, Spread
from extender.scoring.pool import Pool
from tests.inventory.objects import GPU, fresh, node, pod, slice_of

NAMES = ("published", "plugin", "plain")


@pytest.fixture
def snapshot() -> Snapshot:
    ledger = fresh()
    ledger.replaced("Node", [node(n, {GPU: "8"} if n == "plugin" else None) for n in NAMES], [])
    ledger.replaced("ResourceSlice", [slice_of("s", "p", ["a"], node="published")], [])
    ledger.upserted("Pod", pod("busy", node="plain", requests={"cpu": "4", "memory": "8Gi"}))
    ledger.upserted("Pod", pod("gpu", node="plugin", requests={GPU: "5", "cpu": "0"}))
    return ledger.snapshot()


def candidates(*, slots: Sequence[int] = (0, 1, 2), devices: bool = False, **fields: Any) -> Candidates:
    return Candidates(
        workload=WorkloadClass.UNKNOWN,
        asks_for_devices=devices,
        slots=np.array(slots, np.int32),
        free=np.array(fields.get("free", [0] * len(slots)), np.int32),
        total=np.array(fields.get("total", [0] * len(slots)), np.int32),
        wanted=fields.get("wanted", 0),
        amounts=fields.get("amounts", {}),
        rows=lambda _: (),
        devices=lambda: np.zeros((0, len(NAMES)), np.int32),
        predicted=np.ones(len(slots), np.bool_),
    )


def test_pack_prefers_the_node_that_is_fuller_of_matching_devices(snapshot: Snapshot) -> None:
    asked = candidates(devices=True, free=[8, 4, 1], total=[8, 8, 8], wanted=1)
    scores, evidence = Pack().judge(asked, snapshot, 0.0)
    assert scores.tolist() == [1 / 8, 5 / 8, 1.0]
    assert evidence(1) == "62% of the matching devices in use with this pod"


def test_spread_is_the_other_way_round(snapshot: Snapshot) -> None:
    asked = candidates(devices=True, free=[8, 4, 1], total=[8, 8, 8], wanted=1)
    scores, evidence = Spread().judge(asked, snapshot, 0.0)
    assert scores.tolist() == [7 / 8, 3 / 8, 0.0]
    assert evidence(0) == "88% of the matching devices left with this pod"


@pytest.mark.parametrize("judge", [Pack(), Spread()])
def test_a_node_without_room_or_unknown_is_the_last_choice(snapshot: Snapshot, judge: Pack | Spread) -> None:
    asked = candidates(slots=(0, 1, 2, -1), devices=True, free=[2, 0, 0, 0], total=[8, 8, 0, 0], wanted=1)
    scores, evidence = judge.judge(asked, snapshot, 0.0)
    assert scores.tolist()[1:] == [0, 0, 0]
    assert scores[0] > 0
    assert {evidence(i) for i in (1, 2, 3)} == {"no room as far as we see"}


def test_device_plugin_pods_are_packed_by_their_resource(snapshot: Snapshot) -> None:
    asked = candidates(slots=(1,), devices=True, amounts={GPU: 1000})
    assert Pack().judge(asked, snapshot, 0.0)[0].tolist() == [6 / 8]


def test_pods_without_devices_are_packed_by_cpu_and_memory(snapshot: Snapshot) -> None:
    asked = candidates(slots=(0, 2), amounts={"cpu": 2000, "memory": 4 * 2**30 * 1000})
    assert Pack().judge(asked, snapshot, 0.0)[0].tolist() == [0.25, 0.75]


def test_pool_keeps_pods_without_accelerators_off_accelerator_nodes(snapshot: Snapshot) -> None:
    scores, evidence = Pool(["*/gpu"]).judge(candidates(slots=(0, 1, 2, -1)), snapshot, 0.0)
    assert scores.tolist() == [0, 0, 1, 1]
    assert evidence(0) == "an accelerator node, and the pod asks for none"


def test_pool_has_no_opinion_about_pods_that_ask_for_devices(snapshot: Snapshot) -> None:
    assert Pool(["*/gpu"]).judge(candidates(devices=True), snapshot, 0.0)[0].tolist() == [1, 1, 1]


def test_pool_knows_only_the_resources_that_it_is_told_of(snapshot: Snapshot) -> None:
    assert Pool(["amd.com/*"]).judge(candidates(), snapshot, 0.0)[0].tolist() == [0, 1, 1]


def test_the_bench_weighs_opinions_and_ranks_the_sum(snapshot: Snapshot) -> None:
    bench = Bench([Pack(), Spread(), Pool(["*/gpu"])])
    ruling = bench.rule(candidates(), {"pool": 3, "spread": 1}, snapshot, 0.0)
    assert [(o.judge, o.weight) for o in ruling.opinions] == [("pool", 3), ("spread", 1)]
    assert ruling.total.tolist() == pytest.approx([0.25, 0.25, 0.875])
    assert ruling.scores.tolist() == [9, 9, 10]


def test_no_judge_is_indifference(snapshot: Snapshot) -> None:
    ruling = Bench([]).rule(candidates(), {}, snapshot, 0.0)
    assert (ruling.total.tolist(), ruling.scores.tolist()) == ([0.5] * 3, [10] * 3)


def test_one_best_lowers_the_others_of_a_tie(snapshot: Snapshot) -> None:
    ruling = Bench([]).rule(candidates(), {}, snapshot, 0.0, one_best=True)
    assert ruling.scores.tolist() == [10, 9, 9]
