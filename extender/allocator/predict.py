"""Predictions for all candidates at once: plain counts over columns, the rest by the full search.

The in-tree allocator is a deterministic first fit, so its choice on each node is known beforehand.
Never: a verdict about the node: an offered node on which we see no place stays unpredicted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from extender.allocator.demand import Demand, units
from extender.allocator.plain import PlainFit, PlainRequest, fit_plain
from extender.allocator.prediction import UNPREDICTED, Predictions, Unpredicted
from extender.allocator.taints import blocking_taints, tolerated
from extender.api.resource import (
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
)
from extender.inventory.devices import CodedColumn, Int32
from extender.inventory.snapshot import Snapshot
from extender.inventory.topology import Topology
from extender.model.device import DeviceID

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]

_CACHED = 64


class VerdictColumns(Protocol):
    """Selector verdicts for all devices: int8[rows], 1 match, 0 none, -1 error (or no compilation)."""

    def over(self, expression: str, topology: Topology) -> Int8:
        """The column of one expression."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the full search found for one node: the devices in the order of the results, or a reason."""

    devices: tuple[DeviceID, ...] = ()
    failure: Unpredicted | None = None
    note: str = ""


class Search(Protocol):
    """The full search, for nodes on which plain counts can't tell."""

    def fit(
        self, demand: Demand, slots: Iterable[int], snapshot: Snapshot, assumed: frozenset[int]
    ) -> Mapping[int, Found]:
        """Search each node of `slots`, rows in `assumed` counting as taken."""


@dataclass(frozen=True, eq=False, slots=True)
class _Rows:
    """Names rows: those of allocated claims first, then what the search or first fit takes."""

    held: tuple[int, ...]
    plain: PlainFit | None
    found: Mapping[int, Found]
    row_of: Mapping[DeviceID, int]

    def rows(self, slot: int) -> Sequence[int]:
        found = self.found.get(slot)
        if found is not None:
            return (*self.held, *(self.row_of[d] for d in found.devices if d in self.row_of))
        return self.held if self.plain is None else (*self.held, *self.plain.rows(slot))


@dataclass(frozen=True, eq=False, slots=True)
class _Usable:
    """`mask` bool[n]: matches and not tainted; `doubtful` bool[slots]: a search must decide there."""

    mask: Bool
    doubtful: Bool


class Predictor:
    """Predicts for pods; keeps masks of requests it has seen, nothing else."""

    def __init__(self, verdicts: VerdictColumns, search: Search) -> None:
        self._verdicts = verdicts
        self._search = search
        self._usable: OrderedDict[tuple[object, ...], _Usable] = OrderedDict()
        self._usable_at: Topology | None = None
        self._special = CodedColumn(lambda _, d: bool(d.allow_multiple_allocations or d.consumes_counters))
        self._taints = CodedColumn(lambda _, device: blocking_taints(device))
        self._available: tuple[object, Topology, frozenset[int], Bool] | None = None
        self._last: tuple[tuple[object, ...], PlainFit] | None = None

    def predict(
        self, demand: Demand, slots: Int32, snapshot: Snapshot, assumed: frozenset[int] = frozenset()
    ) -> Predictions:
        """Predict for the nodes in `slots` (int32[n], -1 for a node that the ledger does not know).

        `assumed`: rows that pods in flight will probably take; they count as taken.
        """
        topology = snapshot.topology
        held = tuple(
            row
            for claim in demand.allocated
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results or ()
            if (row := topology.table.row_of.get(DeviceID(result.driver, result.pool, result.device)))
            is not None
        )
        status = np.zeros(len(slots), np.int8)
        nothing = np.zeros(len(slots), np.int32)
        if demand.missing:
            status[:] = _code(Unpredicted.CLAIM_UNKNOWN)
            return Predictions(topology, slots, status, nothing, nothing, _Rows((), None, {}, {}), {})
        plugin = self._plugin_nodes(demand, snapshot)
        plain_slots = slots if plugin is None else np.where(plugin[slots] & (slots >= 0), -1, slots)
        backed = {} if plugin is None and not demand.extended else dict(demand.extended)
        requests, complex_claims = self._requests(demand, backed, snapshot)
        fit: PlainFit | None = None
        free = total = nothing
        searched = np.zeros(len(slots), np.bool_)
        if requests:
            fit, doubtful = self._fit(requests, snapshot, assumed)
            known = np.maximum(plain_slots, 0)
            status = np.where(fit.fits[known], status, _code(Unpredicted.NO_FIT)).astype(np.int8)
            searched = (fit.unsure | doubtful)[known]
            free, total = fit.free[known], fit.total[known]
        if complex_claims:
            searched = np.ones(len(slots), np.bool_)
        found: Mapping[int, Found] = {}
        notes: dict[int, str] = {}
        searched &= plain_slots >= 0
        if searched.any():
            indices = np.nonzero(searched)[0].tolist()
            found = self._search.fit(demand, plain_slots[searched].tolist(), snapshot, assumed)
            for index in indices:
                result = found[int(plain_slots[index])]
                status[index] = 0 if result.failure is None else _code(result.failure)
                if result.note:
                    notes[index] = result.note
        if plugin is not None:
            on_plugin = plain_slots < 0
            status[on_plugin] = _code(Unpredicted.COUNT_ONLY)
        status[slots < 0] = _code(Unpredicted.NODE_UNKNOWN)
        rows = _Rows(held, fit, found, topology.table.row_of)
        return Predictions(topology, slots, status, free, total, rows, notes)

    @staticmethod
    def _plugin_nodes(demand: Demand, snapshot: Snapshot) -> Bool | None:
        """Nodes where a device plugin serves all or part of the demand, bool[slots]; None when nowhere."""
        mask: Bool | None = None
        for name in demand.extended:
            allocatable = snapshot.nodes.allocatable.get(name)
            if allocatable is not None:
                offered = allocatable[: snapshot.nodes.slots] > 0
                mask = offered if mask is None else mask | offered
        return mask if mask is not None and mask.any() else None

    def _requests(
        self, demand: Demand, backed: Mapping[str, int], snapshot: Snapshot
    ) -> tuple[list[tuple[tuple[object, ...], ExactDeviceRequest, DeviceClass, int]], bool]:
        """Plain requests in the scheduler's order, and whether something needs the full search."""
        plain: list[tuple[tuple[object, ...], ExactDeviceRequest, DeviceClass, int]] = []
        for claim in demand.claims:
            if claim.spec.devices.constraints:
                return [], True
            for request in claim.spec.devices.requests or ():
                exact = _plain_request(request)
                device_class = snapshot.classes.by_name.get(exact.device_class_name) if exact else None
                if exact is None or device_class is None:
                    return [], True
                plain.append((_key(exact, device_class), exact, device_class, exact.count or 1))
        for name in sorted(backed):
            class_name = snapshot.classes.for_extended_resource(name)
            if class_name is not None:
                exact = ExactDeviceRequest(device_class_name=class_name, count=units(backed[name]))
                device_class = snapshot.classes.by_name[class_name]
                plain.append((_key(exact, device_class), exact, device_class, exact.count))
        return plain, False

    def _fit(
        self,
        requests: Sequence[tuple[tuple[object, ...], ExactDeviceRequest, DeviceClass, int]],
        snapshot: Snapshot,
        assumed: frozenset[int],
    ) -> tuple[PlainFit, Bool]:
        topology = snapshot.topology
        usable = [self._usable_for(key, exact, cls, topology) for key, exact, cls, _ in requests]
        doubtful = usable[0].doubtful
        for more in usable[1:]:
            doubtful = doubtful | more.doubtful
        counts = tuple((key, count) for key, _, _, count in requests)
        mark = (counts, snapshot.occupancy, topology, assumed)
        if self._last is not None and _same(self._last[0], mark):
            return self._last[1], doubtful
        available = self._free(snapshot, assumed)
        fit = fit_plain(
            topology,
            available,
            [PlainRequest(use.mask, count) for use, (_, _, _, count) in zip(usable, requests, strict=True)],
        )
        self._last = (mark, fit)
        return fit, doubtful

    def _free(self, snapshot: Snapshot, assumed: frozenset[int]) -> Bool:
        """Devices that nobody holds, bool[n] in topology order; worked out once a change."""
        topology, occupancy = snapshot.topology, snapshot.occupancy
        kept = self._available
        if kept is not None and kept[0] is occupancy and kept[1] is topology and kept[2] == assumed:
            return kept[3]
        taken = occupancy.taken
        if assumed:
            taken = taken.copy()
            taken[list(assumed)] = True
        available: Bool = ~taken[topology.order]
        self._available = (occupancy, topology, assumed, available)
        return available

    def _usable_for(
        self,
        key: tuple[object, ...],
        request: ExactDeviceRequest,
        device_class: DeviceClass,
        topology: Topology,
    ) -> _Usable:
        if self._usable_at is not topology:
            self._usable.clear()
            self._usable_at = topology
        kept = self._usable.get(key)
        if kept is not None:
            self._usable.move_to_end(key)
            return kept
        verdict = np.ones(len(topology.facts), np.int8)
        for expression in _expressions(request, device_class):
            column = self._verdicts.over(expression, topology)
            # An error counts where everything before it held: selectors are tried in order.
            verdict = np.where(verdict == 1, column, verdict)
        order = topology.order
        rows, tolerations = len(topology.facts), request.tolerations or ()
        special = self._special.where(topology.table, bool)[:rows]
        blocked = self._taints.where(topology.table, lambda held: not tolerated(held, tolerations))[:rows]
        matching = verdict[order] == 1
        doubt = (verdict[order] == -1) | (matching & special[order])
        doubtful: Bool = topology.per_node(doubt) > 0
        if topology.wide and (not len(topology.wide_rows) or (verdict[topology.wide_rows] != 0).any()):
            doubtful = np.ones(len(topology.names), np.bool_)
        usable = self._usable[key] = _Usable(matching & ~blocked[order], doubtful)
        while len(self._usable) > _CACHED:
            self._usable.popitem(last=False)
        return usable


def _code(reason: Unpredicted) -> int:
    return UNPREDICTED.index(reason) + 1


def _same(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    return left[0] == right[0] and left[1] is right[1] and left[2] is right[2] and left[3] == right[3]


def _plain_request(request: DeviceRequest) -> ExactDeviceRequest | None:
    """The request when counting can answer it."""
    exact = request.exactly
    if exact is None or request.first_available:
        return None
    if exact.admin_access or exact.capacity is not None or exact.derived_attributes:
        return None
    return exact if exact.allocation_mode in {"", "ExactCount"} else None


def _expressions(request: ExactDeviceRequest, device_class: DeviceClass) -> Iterable[str]:
    """Class selectors, then the request's own: the order in which the allocator asks."""
    for selector in (*(device_class.spec.selectors or ()), *(request.selectors or ())):
        yield selector.cel.expression if selector.cel is not None else ""


def _key(request: ExactDeviceRequest, device_class: DeviceClass) -> tuple[object, ...]:
    tolerations = tuple(request.tolerations or ())
    return (tuple(_expressions(request, device_class)), tolerations)
