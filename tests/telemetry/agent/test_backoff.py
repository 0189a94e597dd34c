from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.telemetry.agent.backoff import Backoff


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=60))
def test_a_pause_is_within_a_fifth_of_its_doubling_and_never_past_the_longest(draws: list[float]) -> None:
    drawn = iter(draws)
    backoff = Backoff(1.0, 60.0, lambda: next(drawn))
    for failures in range(len(draws)):
        whole = min(60.0, 2.0**failures)
        assert 0.8 * whole <= backoff.next() <= min(60.0, 1.2 * whole)


def test_after_a_success_the_pause_is_short_again() -> None:
    backoff = Backoff(1.0, 60.0, lambda: 0.5)
    assert [backoff.next() for _ in range(3)] == [1.0, 2.0, 4.0]
    backoff.reset()
    assert backoff.next() == 1.0
