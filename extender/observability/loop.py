"""How late the event loop is: a task that asks to be woken and measures when it was.

Never: a remedy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

EVERY = 0.25
"""Seconds between probes: often enough to see stalls that a scheduler feels, rare enough to cost nothing."""


async def watch_lag(
    observe: Callable[[float], None],
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Tell `observe` the lag in seconds after every sleep, until cancelled.

    Args:
        observe: Takes the lag.
        clock: A monotonic clock in seconds.
        sleep: How to wait.
    """
    while True:
        asked = clock() + EVERY
        await sleep(EVERY)
        observe(max(0.0, clock() - asked))
