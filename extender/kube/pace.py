"""Time and chance, as the letterbox uses them: back-off, token bucket, and giving way to others on the loop.

Owns: how long to wait. Never: what is waited for. Clocks, sleep and randomness are handed in.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Pace:
    """The clocks, the sleep and the dice of this process; tests hand in their own."""

    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds: the only clock that decides anything."""

    wall: Callable[[], datetime] = _utc_now
    """UTC, for the times that we write into objects."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    chance: Callable[[], float] = random.SystemRandom().random
    """Uniform in [0, 1)."""

    def jittered(self, seconds: float, spread: float) -> float:
        """`seconds` stretched by a random share of up to `spread` (0.2 = up to 20 % longer)."""
        return seconds * (1.0 + spread * self.chance())


class Backoff:
    """Exponential back-off with jitter and a ceiling.

    The n-th wait is drawn from the upper half of min(ceiling, base * factor**n), so that replicas which lost
    the same API server do not come back in step, and none comes back at once.
    """

    def __init__(
        self, chance: Callable[[], float], *, base: float = 0.5, ceiling: float = 10.0, factor: float = 2.0
    ) -> None:
        self._chance = chance
        self._base = base
        self._ceiling = ceiling
        self._factor = factor
        self._next = base

    def next(self, retry_after: float | None = None, retry_after_ceiling: float = 60.0) -> float:
        """Seconds to wait now; at least what the server asked for, within reason."""
        drawn = self._next * (0.5 + 0.5 * self._chance())
        self._next = min(self._ceiling, self._next * self._factor)
        return max(drawn, min(retry_after or 0.0, retry_after_ceiling))

    def reset(self) -> None:
        """Things are well again: the next wait is short."""
        self._next = self._base


class TokenBucket:
    """At most `burst` at once and `per_second` in the long run. Starts full.

    Raises:
        ValueError: it would never give a token.
    """

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs per_second > 0 and burst >= 1: {per_second}, {burst}")
        self._per_second = per_second
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = now

    def take(self, now: float) -> bool:
        """Take one token if there is one."""
        self._refill(now)
        # A millionth of slack: adding up small refills must not lose a whole token to rounding.
        if self._tokens < 1.0 - 1e-6:
            return False
        self._tokens -= 1.0
        return True

    def wait(self, now: float) -> float:
        """Seconds until `take` will succeed; 0 when it would now."""
        self._refill(now)
        return max(0.0, (1.0 - self._tokens) / self._per_second)

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
            self._at = now


class Breather:
    """Lets the loop serve others when decoding has held it for longer than `budget` seconds."""

    def __init__(self, clock: Callable[[], float], budget: float = 0.005) -> None:
        self._clock = clock
        self._budget = budget
        self._since = clock()

    def start(self) -> None:
        """The loop was just ours: measure from here (after any await that may have suspended)."""
        self._since = self._clock()

    def spent(self) -> bool:
        """Whether the budget is used up; then `await breathe()`."""
        return self._clock() - self._since > self._budget

    async def breathe(self) -> None:
        """Yield once to everything else that is ready."""
        await asyncio.sleep(0)
        self._since = self._clock()


def micro_time(moment: datetime) -> str:
    """A metav1.MicroTime: RFC 3339 with exactly six digits and Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
