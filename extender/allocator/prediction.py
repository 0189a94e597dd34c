"""What predictions look like: for each candidate node the devices that first fit would take, or a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from extender.inventory.devices import Int32
from extender.inventory.topology import Topology

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]


class Unpredicted(StrEnum):
    """Why no device is named for a node that kube-scheduler offered. Stable codes, counted as a metric."""

    NO_FIT = "NoFit"  # our allocator finds no place: the scheduler knows better, or our view is older
    FAILED = "Failed"  # our allocator fails where the scheduler did not
    GAVE_UP = "GaveUp"  # the step bound was reached
    CLAIM_UNKNOWN = "ClaimUnknown"  # a claim of the pod has not reached our watch
    NODE_UNKNOWN = "NodeUnknown"  # the node has not reached our watch
    COUNT_ONLY = "CountOnly"  # device-plugin resources: the kubelet picks, only a count is known


UNPREDICTED = tuple(Unpredicted)
"""Codes by number: `Predictions.status` n means UNPREDICTED[n - 1], 0 means predicted (or nothing asked)."""


def status_of(reason: Unpredicted) -> int:
    """The number of a code."""
    return UNPREDICTED.index(reason) + 1


class Pick(NamedTuple):
    """One device that a node's first fit takes: claim and request by name, device by row."""

    claim: str
    request: str
    row: int


class Picker(Protocol):
    """Names the devices for one candidate when somebody asks: most replies need them for one node only."""

    def picks(self, slot: int) -> Sequence[Pick]:
        """What first fit takes on the node, in the order of the claims' results."""

    def devices(self, slots: Int32) -> Int32:
        """Rows of the same devices for many nodes at once, int32[k, m] for `slots` int32[m], all known.

        Column i is of node `slots[i]`: its devices in no order, -1 where it gets fewer than others; of no
        meaning for a node on which nothing is predicted.
        """


@dataclass(frozen=True, eq=False, slots=True)
class Predictions:
    """For n candidates: `slots` int32[n] (-1 unknown node), `status` int8[n] (see UNPREDICTED).

    `free` and `total` (int32[n]) count the devices that match the first request, so that judges can tell how
    full a node is for this pod. `notes` says more about some unpredicted candidates.
    """

    topology: Topology
    slots: Int32
    status: Int8
    free: Int32
    total: Int32
    picker: Picker
    notes: Mapping[int, str]

    def picks(self, index: int) -> Sequence[Pick]:
        """Predicted devices for candidate `index`; empty when unpredicted."""
        slot = int(self.slots[index])
        return () if slot < 0 or self.status[index] else self.picker.picks(slot)

    def rows(self, index: int) -> Sequence[int]:
        """Predicted rows for candidate `index`; empty when unpredicted."""
        return [pick.row for pick in self.picks(index)]

    def devices(self, among: npt.NDArray[np.intp]) -> Int32:
        """Predicted rows of the candidates `among` all, which are predicted: int32[k, m], see `Picker`."""
        return self.picker.devices(self.slots[among])

    def by_slot(self) -> Int32:
        """The same of all nodes by slot, int32[k, slots]; of no meaning but for predicted candidates.

        In this order neighbours lie side by side in memory; candidates come in a random one.
        """
        return self.picker.devices(np.arange(len(self.topology.names), dtype=np.int32))

    @property
    def predicted(self) -> Bool:
        """Candidates that are predicted, bool[n]."""
        known: Bool = (self.status == 0) & (self.slots >= 0)
        return known

    def reason(self, index: int) -> Unpredicted | None:
        """Why candidate `index` is unpredicted, None when it is not."""
        status = int(self.status[index])
        return UNPREDICTED[status - 1] if status else None
