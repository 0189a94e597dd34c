"""Pods that were placed a short while ago: their load does not show in telemetry yet.

Fed by whoever sees a pod bound and its devices granted. An estimate's memory only: it holds nothing taken.
Never: a clock (`now` is handed in).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from extender.model.device import DeviceID

_MOST = 4096


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod on its node and devices, since `at`."""

    uid: str
    node: str
    devices: tuple[DeviceID, ...]
    at: float


class Placements:
    """The newest placements; `count` is of all that ever were."""

    def __init__(self) -> None:
        self._placed: deque[Placement] = deque(maxlen=_MOST)
        self.count = 0

    def placed(self, uid: str, node: str, devices: Sequence[DeviceID], now: float) -> None:
        """A pod was placed."""
        self._placed.append(Placement(uid, node, tuple(devices), now))
        self.count += 1

    def after(self, count: int) -> Iterator[Placement]:
        """Placements that came after the first `count`, as far as they are kept; newest first."""
        return islice(reversed(self._placed), max(0, self.count - count))
