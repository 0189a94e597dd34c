"""Token buckets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.telemetry.limits import Buckets


@given(st.lists(st.floats(0, 5), max_size=60))
def test_never_more_than_burst_and_rate_allow(pauses: list[float]) -> None:
    buckets = Buckets(rate=2.0, burst=5.0, most=10)
    now, granted = 0.0, 0
    for pause in pauses:
        now += pause
        granted += buckets.allow("a", now)
        assert granted <= 5 + 2 * now + 1e-6


def test_a_key_that_was_idle_for_a_day_has_its_burst_and_no_more() -> None:
    buckets = Buckets(rate=1.0, burst=3.0, most=10)
    assert buckets.allow("a", 0.0)
    assert [buckets.allow("a", 86_400.0) for _ in range(5)] == [True, True, True, False, False]


def test_what_was_refused_costs_nothing() -> None:
    buckets = Buckets(rate=1.0, burst=1.0, most=10)
    assert buckets.allow("a", 0.0)
    assert not any(buckets.allow("a", 0.0) for _ in range(10))
    assert buckets.allow("a", 1.0)


def test_a_clock_that_goes_back_gives_nothing() -> None:
    buckets = Buckets(rate=1.0, burst=1.0, most=10)
    assert buckets.allow("a", 100.0)
    assert not buckets.allow("a", 0.0)


def test_the_idlest_key_is_forgotten_first() -> None:
    buckets = Buckets(rate=0.001, burst=1.0, most=2)
    for key in ("a", "b", "a", "c"):
        buckets.allow(key, 0.0)
    assert not buckets.allow("a", 0.0)
    assert buckets.allow("b", 0.0)
