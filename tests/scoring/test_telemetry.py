"""Judge `telemetry`: what it prefers, what it makes of the unknown, and what it says."""

from __future__ import annotations

import pytest

from extender.api.telemetry import Absence, Device, Readings
from extender.inventory.inflight import Assumption
from extender.model.device import DeviceID
from extender.verbs.prioritize import prioritize
from tests.inventory.objects import claim, result
from tests.verbs.live import DRIVER, GIB, Live, asking, gpu

ONLY: dict[str, object] = {
    "apiVersion": "berth.scheduler/v1alpha1",
    "kind": "Policy",
    "metadata": {"name": "test"},
    "judges": {"telemetry": 1},
}


@pytest.fixture
def live() -> Live:
    made = Live(policy=ONLY)
    made.tell_all()
    return made


def totals(live: Live, *claims: str) -> list[float]:
    found: list[float] = prioritize(live.desk, live.question(asking(*claims))).total.tolist()
    return found


def evidence(live: Live, index: int, *claims: str) -> str:
    return prioritize(live.desk, live.question(asking(*claims))).opinions[0].evidence(index)


@pytest.mark.parametrize(
    "worse",
    [
        {"utilisation_gpu": 60},
        {"memory_used": 40 * GIB},
        {"temperature": 70},
        {"throttle": 64},
    ],
)
def test_the_node_whose_predicted_device_is_worse_scores_less(live: Live, worse: dict[str, int]) -> None:
    live.now += 20
    live.tell("n0", gpu("n0", 0, processes=None, **worse), gpu("n0", 1))
    live.tell("n1", gpu("n1", 0), gpu("n1", 1, processes=None, **worse))
    first, second = totals(live)
    assert first < second


def test_correctable_errors_count_for_an_hour_after_they_rose(live: Live) -> None:
    def both(errors: int) -> list[float]:
        live.tell("n0", gpu("n0", 0, ecc_corrected_volatile=errors), gpu("n0", 1))
        live.tell("n1", gpu("n1", 0), gpu("n1", 1))
        return totals(live)

    live.now += 20
    first, second = both(5)
    assert first < second
    live.now += 3601
    first, second = both(5)
    assert first == second


def test_a_slowdown_that_is_only_a_power_cap_does_not_count(live: Live) -> None:
    live.now += 20
    live.tell("n0", gpu("n0", 0, throttle=1 | 2 | 4), gpu("n0", 1))
    first, second = totals(live)
    assert first == second


def test_a_pod_is_judged_by_its_worst_device(live: Live) -> None:
    live.now += 20
    live.tell("n0", gpu("n0", 0), gpu("n0", 1, utilisation_gpu=80))
    assert totals(live)[0] == totals(live)[1]
    first, second = totals(live, "c", "d")
    assert first < second
    assert evidence(live, 0, "c", "d").startswith("gpu-1 (worst of 2): idle 0.20 fresh")


def test_one_quiet_moment_does_not_make_a_busy_device_idle(live: Live) -> None:
    for _ in range(5):
        live.now += 60
        live.tell("n0", gpu("n0", 0, utilisation_gpu=100), gpu("n0", 1))
        live.tell("n1", gpu("n1", 0), gpu("n1", 1))
    live.now += 15
    live.tell("n0", gpu("n0", 0), gpu("n0", 1))
    first, second = totals(live)
    assert first < second


def test_unknown_counts_neither_as_idle_nor_as_overloaded() -> None:
    live = Live(("n0", "n1", "n2"), policy=ONLY)
    blind = Readings(memory_total=Absence.ERROR)
    for name, load in (("n0", 10), ("n2", 90)):
        live.tell(name, *(gpu(name, number, utilisation_gpu=load) for number in range(2)))
    live.tell("n1", *(Device(f"GPU-n1-{number}", number, readings=blind) for number in range(2)))
    idle, unknown, busy = totals(live)
    assert busy < unknown < idle
    assert evidence(live, 1) == (
        "gpu-0: idle unsupported, room absent, cool unsupported, unthrottled unsupported, sound unsupported"
    )


def test_a_stale_reading_counts_half_and_an_absent_one_not_at_all() -> None:
    live = Live(("n0", "n1", "n2"), policy=ONLY)
    live.tell("n0", gpu("n0", 0, utilisation_gpu=100), gpu("n0", 1))
    live.tell("n1", gpu("n1", 0), gpu("n1", 1))
    live.tell("n2", gpu("n2", 0, utilisation_gpu=100), gpu("n2", 1))
    fresh = totals(live)
    live.now += 60
    for name in ("n1", "n2"):
        live.tell(name, gpu(name, 0, utilisation_gpu=100 if name == "n2" else 0), gpu(name, 1))
    stale = totals(live)
    assert fresh[0] == fresh[2]
    assert stale[2] < stale[0] < stale[1]
    assert "idle 0.00 stale" in evidence(live, 0)


def test_with_nothing_known_it_abstains() -> None:
    live = Live(policy=ONLY)
    ruling = prioritize(live.desk, live.question(asking()))
    assert (ruling.opinions[0].weight, ruling.total.tolist()) == (0.0, [0.5, 0.5])


def test_a_node_on_which_nothing_is_predicted_is_in_the_middle(live: Live) -> None:
    live.ledger.upserted("ResourceClaim", claim("h0", [result("n0", "gpu-0")]))
    live.ledger.upserted("ResourceClaim", claim("h1", [result("n0", "gpu-1")]))
    live.now += 20
    live.tell("n1", gpu("n1", 0, utilisation_gpu=90), gpu("n1", 1))
    first, second = totals(live)
    assert second < first
    assert evidence(live, 0) == "no device is predicted: as the median device"


def test_a_pod_that_is_expected_on_a_node_makes_it_busier(live: Live) -> None:
    row = live.ledger.snapshot().topology.table.row_of[DeviceID(DRIVER, "n0", "gpu-0")]
    expected = [("other", Assumption("n0", (row,), live.now))]
    asked = live.question(asking(), expected)
    first, second = prioritize(live.desk, asked).total.tolist()
    assert first < second


def test_a_pod_that_was_just_placed_counts_until_its_load_shows(live: Live) -> None:
    live.placements.placed("other", "n0", [DeviceID(DRIVER, "n0", "gpu-1")], live.now)
    first, second = totals(live)
    assert first < second
    assert evidence(live, 0).endswith("50% more load expected of pods just placed")
    live.now += 600
    live.tell_all()
    later, other = totals(live)
    assert other - later < 0.01 * (second - first)


def test_the_policys_threshold_says_what_is_hot(live: Live) -> None:
    live.now += 20
    live.tell("n0", gpu("n0", 0, temperature=60), gpu("n0", 1, temperature=60))
    mild = totals(live)
    hot = {**ONLY, "thresholds": {"temperatureC": 60}}
    strict = Live(policy=hot)
    strict.tell_all()
    strict.now += 20
    strict.tell("n0", gpu("n0", 0, temperature=60), gpu("n0", 1, temperature=60))
    first, second = totals(strict)
    assert first - second < mild[0] - mild[1]
