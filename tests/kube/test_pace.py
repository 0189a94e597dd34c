from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.pace import Backoff, TokenBucket, micro_time


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=40))
def test_a_wait_is_never_zero_nor_above_the_ceiling(dice: list[float]) -> None:
    thrown = iter(dice)
    backoff = Backoff(lambda: next(thrown), base=0.5, ceiling=10)
    for _ in dice:
        assert 0.25 <= backoff.next() <= 10


def test_a_server_may_ask_for_more_but_not_for_ever() -> None:
    backoff = Backoff(lambda: 0.0)
    assert backoff.next(30) == 30
    assert backoff.next(1e9) == 60


@given(
    st.floats(0.1, 100),
    st.integers(1, 50),
    st.lists(st.floats(0, 10), min_size=1, max_size=200),
)
def test_a_bucket_gives_no_more_than_burst_plus_rate(rate: float, burst: int, steps: list[float]) -> None:
    now = 100.0
    bucket = TokenBucket(rate, burst, now)
    taken = 0
    for step in steps:
        now += step
        taken += bucket.take(now)
    assert taken <= burst + rate * (now - 100.0) + 0.01


def test_a_bucket_that_was_idle_for_a_day_gives_its_burst_and_no_more() -> None:
    bucket = TokenBucket(2, 3, 0.0)
    assert [bucket.take(86_400.0) for _ in range(5)] == [True, True, True, False, False]


@given(st.floats(0.1, 100), st.integers(1, 50))
def test_after_the_wait_that_it_names_a_bucket_gives(rate: float, burst: int) -> None:
    bucket = TokenBucket(rate, burst, 0.0)
    for _ in range(burst):
        assert bucket.take(0.0)
    assert not bucket.take(0.0)
    assert bucket.take(bucket.wait(0.0))


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_never_gives_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="token bucket"):
        TokenBucket(rate, burst, 0.0)


def test_micro_times_have_six_digits() -> None:
    assert micro_time(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05.000000Z"
