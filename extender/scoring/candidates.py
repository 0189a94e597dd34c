"""What a judge sees of the candidates: arrays, one element a node, in request order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from extender.inventory.inflight import Assumption
from extender.inventory.snapshot import Snapshot
from extender.model.workload import WorkloadClass
from extender.scoring.thresholds import Thresholds

Int32 = npt.NDArray[np.int32]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Candidates:
    """The pod's demand and its n candidates.

    `slots` int32[n] (-1: a node that the ledger does not know); `free` and `total` int32[n]: devices that
    match the pod's first request, `wanted` how many of them it takes; `amounts`: effective requests in
    thousandths; `rows(i)`: predicted device rows of candidate i; `devices()`: the same of all nodes by slot,
    int32[k, slots], -1 below those that get fewer than others, of no meaning but for candidates that are
    `predicted` (bool[n]). `assumed`: by pod UID, where other pods will probably land.
    """

    workload: WorkloadClass
    asks_for_devices: bool
    slots: Int32
    free: Int32
    total: Int32
    wanted: int
    amounts: Mapping[str, int]
    rows: Callable[[int], Sequence[int]]
    devices: Callable[[], Int32]
    predicted: Bool
    assumed: Sequence[tuple[str, Assumption]] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)


Evidence = Callable[[int], str]
"""Says in words what a judge saw of candidate i; called for explain only."""


class Judge(Protocol):
    """One idea about where a pod should go."""

    @property
    def name(self) -> str:
        """The name that policies use."""

    def judge(self, candidates: Candidates, snapshot: Snapshot, now: float) -> tuple[Float64, Evidence]:
        """Scores float64[n] in 0..1 (1 is best), and the evidence. All equal when there is nothing to say.

        All NaN: the judge abstains, and its weight does not count.
        """
