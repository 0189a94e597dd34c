from __future__ import annotations

from extender.wiring.clock import steady_clock


def test_a_wall_clock_that_is_set_back_does_not_move_it() -> None:
    wall, monotonic = [1_000_000.0], [50.0]
    clock = steady_clock(lambda: wall[0], lambda: monotonic[0])
    assert clock() == 1_000_000.0
    wall[0] -= 3600
    monotonic[0] += 2
    assert clock() == 1_000_002.0
