"""Marks of all devices: the terms with the unknown filled in, and the score that they make.

What is not known counts as the median of the fleet's fresh devices, 0.5 if there are none: neither idle nor
overloaded. A stale value counts half, the other half is that median.
The marks are brought up to date at most once a second, and worked out again only for devices of which
something was read, or whose readings went stale or absent meanwhile. They are always what they would be if
all were worked out again at that moment.
Never: a pod, or load that does not show yet.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from extender.inventory.columns import resized
from extender.inventory.devices import Int32
from extender.inventory.outlook import Outlook
from extender.inventory.telemetry_columns import Columns, Freshness
from extender.scoring.candidates import Float64
from extender.scoring.terms import TERMS, UInt8, same_until, terms_of
from extender.scoring.thresholds import Thresholds

Float32 = npt.NDArray[np.float32]
Bool = npt.NDArray[np.bool_]

WEIGHTS: Final = (np.array(list(TERMS.values())) / sum(TERMS.values())).astype(np.float32)
"""float32[5], of sum 1."""
MAX_AGE: Final = 1.0
_NEUTRAL: Final = 0.5
_EARLY: Final = 1e-6  # seconds: more than what rounding does to an instant
_NOBODY: Final = -2  # no row of telemetry, and unlike -1 never one of an outlook


class Marks:
    """By device row: `terms` float32[5, rows] and `score` float32[rows + 1], whose last stands for no device.

    Single precision, since what an answer costs is touching them. `neutral`: score of a device that nothing
    is known of. `anything`: something is known of any. `version` grows when any of this changes.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._thresholds: Thresholds | None = None
        self._at = np.inf
        self._written = 0  # the columns' version
        self._joined: Int32 = np.zeros(0, np.int32)  # the outlook's, to be recognised
        self._own: Int32 = np.zeros(0, np.int32)
        self._gpus: Int32 = np.zeros(0, np.int32)
        self._values: Float32 = np.zeros((len(TERMS), 0), np.float32)
        self._states: UInt8 = np.zeros((len(TERMS), 0), np.uint8)
        self._until: Float64 = np.zeros(0)
        self.terms = self._values
        self.score: Float32 = np.full(1, np.inf, np.float32)
        self.neutral = _NEUTRAL
        self.anything = False
        self.version = 0

    def look(self, outlook: Outlook, thresholds: Thresholds, now: float) -> None:
        """Bring the marks up to date, if they are older than a second or of another fleet."""
        joined, same_rules = outlook.rows is self._joined, thresholds == self._thresholds
        if joined and same_rules and 0 <= now - self._at < MAX_AGE:
            return
        changed = np.full(len(outlook.rows), not same_rules or now < self._at)
        if not joined:
            self._join(outlook, changed)
        changed |= self._until <= now
        changed |= self._columns.written_after(self._written, self._own)
        if self._gpus is not self._own:
            changed |= self._columns.written_after(self._written, self._gpus)
        at = np.flatnonzero(changed)
        self._thresholds, self._at, self._written = thresholds, now, self._columns.version
        if len(at):
            asked = self._columns, self._own[at], self._gpus[at], thresholds, now
            self._values[:, at], self._states[:, at] = terms_of(*asked)
            self._until[at] = same_until(*asked) - _EARLY
        if len(at) or not joined:
            self._fill()

    def _join(self, outlook: Outlook, changed: Bool) -> None:
        """Take over another join; what belongs to another row of telemetry than before is marked changed."""
        own = outlook.rows
        gpus = own if np.array_equal(own, outlook.gpus) else np.where(own >= 0, outlook.gpus, -1)
        before = len(self._own)
        if before != len(own):
            self._own = resized(self._own, len(own), _NOBODY)
            self._gpus = resized(self._gpus, len(own), _NOBODY)
            self._values = resized(self._values, len(own))
            self._states = resized(self._states, len(own))
            self._until = resized(self._until, len(own))
        changed |= (own != self._own) | (gpus != self._gpus)
        self._joined, self._own, self._gpus = outlook.rows, own, gpus

    def _fill(self) -> None:
        values, states = self._values, self._states
        fresh = states == Freshness.FRESH
        neutral = np.array([_median(v if f.all() else v[f]) for v, f in zip(values, fresh, strict=True)])
        middle = neutral.astype(np.float32)[:, None]
        doubtful = np.flatnonzero(~fresh.all(axis=0))
        known, state = values[:, doubtful], states[:, doubtful]
        filled = np.where(state <= Freshness.STALE, known, middle)
        terms = values.copy()
        terms[:, doubtful] = np.where(state == Freshness.STALE, (filled + middle) / 2, filled)
        self.terms = terms
        self.score = np.append(WEIGHTS @ terms, np.float32(np.inf))
        self.neutral = float(WEIGHTS @ middle[:, 0])
        self.anything = bool((states <= Freshness.STALE).any())
        self.version += 1


def _median(known: Float32) -> float:
    return float(np.median(known)) if len(known) else _NEUTRAL
