"""The lag of the event loop is what a sleeper was late by."""

from __future__ import annotations

import asyncio

import pytest

from extender.observability.loop import EVERY, watch_lag


class Times:
    """A clock that each sleep moves by what was asked and a lateness from the list."""

    def __init__(self, *late: float) -> None:
        self.now = 100.0
        self._late = list(late)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if not self._late:
            raise asyncio.CancelledError
        self.now += seconds + self._late.pop(0)


async def observed(*late: float) -> list[float]:
    times, found = Times(*late), list[float]()
    with pytest.raises(asyncio.CancelledError):
        await watch_lag(found.append, times.clock, times.sleep)
    return found


async def test_each_lateness_is_told() -> None:
    assert await observed(0.0, 0.5, 0.125) == pytest.approx([0.0, 0.5, 0.125])


async def test_a_clock_that_wakes_early_is_no_negative_lag() -> None:
    assert await observed(-EVERY / 2) == [0.0]


async def test_a_blocked_loop_is_seen() -> None:
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[float] = asyncio.Queue()
    task = loop.create_task(watch_lag(told.put_nowait, loop.time))
    await told.get()
    blocked_until = loop.time() + 2 * EVERY
    while loop.time() < blocked_until:
        pass
    assert await told.get() >= EVERY / 2
    task.cancel()
