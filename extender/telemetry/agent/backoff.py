"""Pauses that double from a least to a longest, with jitter so that a fleet does not march in step."""

from __future__ import annotations

import random
from collections.abc import Callable

_JITTER = 0.2


class Backoff:
    """`next()` gives the pause after one more failure; `reset()` follows a success."""

    def __init__(self, least: float, longest: float, draw: Callable[[], float] = random.random) -> None:
        self._least = least
        self._longest = longest
        self._draw = draw
        self._failures = 0

    def reset(self) -> None:
        """It worked."""
        self._failures = 0

    def next(self) -> float:
        """Seconds to wait, within 20 % of least * 2**failures, never past the longest."""
        pause = min(self._longest, self._least * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return float(min(self._longest, pause * (1 + _JITTER * (2 * self._draw() - 1))))
