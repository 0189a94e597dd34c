"""Pods that were placed a short while ago: their load does not show in telemetry yet.

Fed by whoever sees a pod bound and its devices granted. An estimate's memory only: it holds nothing taken.
Never: a clock (`now` is handed in).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    """The newest placements, oldest first."""

    def __init__(self) -> None:
        self._placed: deque[Placement] = deque(maxlen=_MOST)

    def placed(self, uid: str, node: str, devices: Sequence[DeviceID], now: float) -> None:
        """A pod was placed."""
        self._placed.append(Placement(uid, node, tuple(devices), now))

    def since(self, begin: float) -> Iterator[Placement]:
        """Placements at or after `begin`, newest first."""
        for placement in reversed(self._placed):
            if placement.at < begin:
                return
            yield placement
