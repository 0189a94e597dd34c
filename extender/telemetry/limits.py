"""Token buckets by key, bounded in number: who may send how often.

Never: a clock (`now` is handed in).
"""

from __future__ import annotations

from collections import OrderedDict


class Buckets:
    """`allow(key)` takes a token; buckets refill at `rate` a second to `burst`. The idlest are forgotten."""

    def __init__(self, rate: float, burst: float, most: int) -> None:
        self._rate = rate
        self._burst = burst
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, key: str, now: float) -> bool:
        """Take a token; False when there is none."""
        level = self.level(key, now)
        granted = level >= 1.0
        self._levels[key] = (level - 1.0 if granted else level, now)
        self._levels.move_to_end(key)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return granted

    def level(self, key: str, now: float) -> float:
        """Tokens that are there."""
        level, at = self._levels.get(key, (self._burst, now))
        return min(self._burst, level + max(0.0, now - at) * self._rate)
