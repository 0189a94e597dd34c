"""Judge `pool`: keeps pods without accelerators off accelerator nodes."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from extender.inventory.snapshot import Snapshot
from extender.inventory.topology import Topology
from extender.scoring.candidates import Candidates, Evidence, Float64

Bool = npt.NDArray[np.bool_]


class Pool:
    """Pods without accelerators belong on nodes without them; the others are indifferent."""

    name = "pool"

    def __init__(self, accelerator_resources: Sequence[str]) -> None:
        """`accelerator_resources`: patterns (fnmatch) of device-plugin resources that are accelerators."""
        self._patterns = tuple(accelerator_resources)

    def judge(self, candidates: Candidates, snapshot: Snapshot, now: float) -> tuple[Float64, Evidence]:  # noqa: ARG002 - a judge's seam
        """1 where the pod belongs, 0 on an accelerator node that it has no use for."""
        if candidates.asks_for_devices:
            return np.ones(len(candidates.slots)), lambda _: "asks for devices"
        accelerator = accelerator_nodes(snapshot, self._patterns)
        known = candidates.slots >= 0
        wasted = known & accelerator[np.where(known, candidates.slots, 0)]
        return (
            np.where(wasted, 0.0, 1.0),
            lambda i: (
                "an accelerator node, and the pod asks for none" if wasted[i] else "no accelerators here"
            ),
        )


def accelerator_nodes(snapshot: Snapshot, patterns: Sequence[str]) -> Bool:
    """Nodes with published accelerators or a device plugin's, bool[slots]."""
    topology: Topology = snapshot.topology
    found = topology.accelerator.copy()
    for name, column in snapshot.nodes.allocatable.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            found |= column[: len(found)] > 0
    return found
