"""Vetoes `DeviceUnhealthy`, `DeviceLost`, `EccUncorrectable`, `RowRemapPending` and `DriverStale`.

They are about the devices that first fit would take. A node that is not heard refuses nothing, and an
offered node on which no device is predicted passes; only a device plugin's pod, of which a count is known, is
kept off a node that has too little fit for it.
Never: heat or load (the judges' matter), or numbers in the texts that kube-scheduler aggregates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

import numpy as np
import numpy.typing as npt

from extender.allocator.demand import Demand, units
from extender.allocator.prediction import Unpredicted, status_of
from extender.inventory.health import BY_GRAVITY, Finding
from extender.inventory.outlook import Lookout, Outlook
from extender.model.reason import Reason
from extender.verbs.desk import Question, Refusals

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]

BLOCKS_NODE: Final = "DeviceUnhealthyBlocksNode"
"""A sick free first device keeps a pod from its fit neighbours: no refusal of its own, but explained."""

_FIT: Final = np.int8(127)
_NAMED: Final = 8  # neighbours named in explain
_DEVICE: Final = {
    Reason.DRIVER_STALE: "no driver answers on the node while its devices are still published",
    Reason.DEVICE_LOST: "the device that the pod would get has fallen off the bus",
    Reason.ECC_UNCORRECTABLE: "the device that the pod would get has uncorrectable memory errors",
    Reason.DEVICE_UNHEALTHY: "the device that the pod would get is unhealthy",
    Reason.ROW_REMAP_PENDING: "the device that the pod would get waits for a row remap, or failed one",
}
_WHOLE: Final = "no device of the node is fit for new pods"
_TOO_FEW: Final = "fewer devices of the node are fit than the pod asks for"
# By number: a device's reason, then the same for a node as a whole, then for too few of it.
_REASONS: Final = (
    *((reason, _DEVICE[reason]) for reason in BY_GRAVITY),
    *((r, _DEVICE[r] if r is Reason.DRIVER_STALE else _WHOLE) for r in BY_GRAVITY),
    *((reason, _TOO_FEW) for reason in BY_GRAVITY),
)


class HealthVeto:
    """Refuses nodes whose predicted device is unfit, and plugin nodes on which too little is fit."""

    def __init__(self, lookout: Lookout, accelerator_resources: Sequence[str]) -> None:
        """`accelerator_resources`: patterns (fnmatch) of device-plugin resources that are accelerators."""
        self._lookout = lookout
        self._patterns = tuple(accelerator_resources)

    def refuse(self, question: Question) -> Refusals | None:
        """Refuse for health; None when every candidate is fit, which is cheap to see."""
        outlook = self._lookout.look(question.snapshot.topology, question.now)
        if not outlook.sick:
            return None
        refused = _worst_predicted(question, outlook)
        bad = np.flatnonzero(refused > 0)
        refused[bad[outlook.entirely[question.slots[bad]]]] += len(BY_GRAVITY)
        self._refuse_counted(question, outlook, refused)
        if not refused.any():
            return None
        return Refusals(refused, _REASONS, lambda i: self._detail(question, outlook, i, int(refused[i])))

    def _refuse_counted(self, question: Question, outlook: Outlook, refused: Int8) -> None:
        """Device plugins: the kubelet picks the device, so only counts are known."""
        wanted = _asked(question.demand, self._patterns)
        if not wanted:
            return
        counted = question.predictions.status == status_of(Unpredicted.COUNT_ONLY)
        for index in np.nonzero(counted)[0].tolist():
            slot = int(question.slots[index])
            node = outlook.sick.get(slot)
            if node is None:
                continue
            number = BY_GRAVITY.index(node.reason) + 1
            if node.entirely:
                refused[index] = number + len(BY_GRAVITY)
            elif any(
                _are_gpus(question, name, slot, node.gpus) and node.gpus - node.unfit < amount
                for name, amount in wanted.items()
            ):
                refused[index] = number + 2 * len(BY_GRAVITY)

    def _detail(self, question: Question, outlook: Outlook, index: int, number: int) -> str:
        slot = int(question.slots[index])
        table = outlook.topology.table
        said = []
        if outlook.entirely[slot]:
            found = self._lookout.health.reasons(
                outlook.topology.names[slot],
                self._lookout.health.holding(outlook.topology.names[slot], question.now),
                question.now,
            )
            said.append(f"all devices: {_in_words(found, question.now)}")
        else:
            for row in dict.fromkeys(question.predictions.rows(index)):
                if outlook.unfit[row]:
                    found = self._lookout.findings(outlook, slot, row, question.now)
                    said.append(f"{table.ids[row].device}: {_in_words(found, question.now)}")
        if slot in outlook.sick and question.predictions.reason(index) is Unpredicted.COUNT_ONLY:
            node = outlook.sick[slot]
            said.append(f"{node.unfit} of {node.gpus} GPUs are unfit")
        if 0 < number <= len(BY_GRAVITY) and _others_would_do(question, outlook, index):
            rows = outlook.of_slot(slot)
            fit = rows[(outlook.unfit[rows] == 0) & ~question.snapshot.occupancy.taken[rows]].tolist()
            names = ", ".join(table.ids[row].device for row in fit[:_NAMED])
            said.append(f"{BLOCKS_NODE}: fit and free beside it: {names}{', ...' if fit[_NAMED:] else ''}")
        return "; ".join(said)


def _worst_predicted(question: Question, outlook: Outlook) -> Int8:
    """The gravest code among the devices predicted for each candidate, int8[n]; 0 where all are fit."""
    predictions, demand = question.predictions, question.demand
    worst = np.zeros(len(question.slots), np.int8)
    if demand.allocated:  # a claim's device may be another node's
        at = np.flatnonzero(predictions.predicted)
    else:
        at = np.flatnonzero(outlook.partly.take(question.slots, mode="clip"))
        at = at[(question.slots[at] >= 0) & (predictions.status[at] == 0)]
    admin = _admin_requests(demand)
    if admin:  # who looks after devices may look at sick ones
        for index in at.tolist():
            for pick in predictions.picks(index):
                if outlook.unfit[pick.row] and (pick.claim, pick.request) not in admin:
                    worst[index] = min(worst[index] or _FIT, outlook.unfit[pick.row])
        return worst
    if len(at):
        rows = predictions.devices(at)
        codes = np.where(rows >= 0, outlook.unfit[rows], 0)
        gravest = np.where(codes > 0, codes, _FIT).min(axis=0, initial=_FIT)
        worst[at] = np.where(gravest == _FIT, 0, gravest)
    return worst


def _admin_requests(demand: Demand) -> set[tuple[str, str]]:
    """Claim and request of requests with admin access."""
    return {
        (claim.metadata.name, request.name)
        for claim in (*demand.claims, *demand.allocated)
        for request in claim.spec.devices.requests or ()
        if request.exactly is not None and request.exactly.admin_access
    }


def _others_would_do(question: Question, outlook: Outlook, index: int) -> bool:
    """Whether candidate `index` has enough matching devices but for the sick ones; rather too few."""
    rows = outlook.of_slot(int(question.slots[index]))
    sick = int(np.count_nonzero((outlook.unfit[rows] > 0) & ~question.snapshot.occupancy.taken[rows]))
    wanted = len(set(question.predictions.rows(index)))
    return int(question.predictions.free[index]) - sick >= wanted


def _asked(demand: Demand, patterns: Iterable[str]) -> dict[str, int]:
    """Accelerators by resource that the pod wants of a device plugin, in whole units."""
    return {
        name: units(amount)
        for name, amount in demand.extended.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def _are_gpus(question: Question, name: str, slot: int, gpus: int) -> bool:
    """Whether a unit of the resource is a whole GPU there: no MIG slice, and no share of its time."""
    offered = question.snapshot.nodes.allocatable.get(name)
    return name.endswith("/gpu") and offered is not None and units(int(offered[slot])) <= gpus


def _in_words(findings: Sequence[Finding], now: float) -> str:
    return ", ".join(f"{f.reason}: {f.text}, for {max(0.0, now - f.since):.0f} s" for f in findings)
