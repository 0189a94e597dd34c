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

from extender.allocator.demand import Demand
from extender.allocator.plain import CandidatePlaces, PlainFit, PlainRequest, fit_plain
from extender.allocator.prediction import Pick, Predictions, Unpredicted, status_of
from extender.allocator.requests import MAX_RESULTS
from extender.allocator.taints import blocking_taints, tolerated
from extender.api.resource import DeviceClass, DeviceRequest, ExactDeviceRequest
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


class Searched(Protocol):
    """What the full search found: `status` int8[m] in the order of the slots (see UNPREDICTED).

    `notes` says more about some of them, by position.
    """

    @property
    def status(self) -> Int8: ...  # noqa: D102 - the class says it
    @property
    def notes(self) -> Mapping[int, str]: ...  # noqa: D102 - the class says it

    def picks(self, slot: int) -> tuple[Pick, ...] | None:
        """Devices of a searched node in the order of the results; None for a node that was not searched."""

    def devices(self, slots: Int32) -> tuple[Int32, Bool]:
        """Rows for `slots` (int32[m]) as `Picker.devices` has them; and which were searched, bool[m]."""


class Searcher(Protocol):
    """The full search, for nodes on which plain counts can't tell."""

    def fit(self, demand: Demand, slots: Int32, snapshot: Snapshot, assumed: frozenset[int]) -> Searched:
        """Search each node of `slots` (int32[m]), rows in `assumed` counting as taken."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A request that counting can answer, and whose it is."""

    claim: str
    name: str
    exact: ExactDeviceRequest
    device_class: DeviceClass

    @property
    def count(self) -> int:
        return self.exact.count or 1

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for requests that accept the same devices."""
        return (tuple(_expressions(self.exact, self.device_class)), tuple(self.exact.tolerations or ()))


@dataclass(frozen=True, eq=False, slots=True)
class _Picks:
    """Names devices: those of allocated claims first, then what the search or first fit takes."""

    held: tuple[Pick, ...]
    plain: PlainFit | None
    planned: Sequence[_Planned]
    searched: Searched | None
    places: CandidatePlaces

    def picks(self, slot: int) -> Sequence[Pick]:
        found = self.searched.picks(slot) if self.searched is not None else None
        if found is not None:
            return (*self.held, *found)
        if self.plain is None:
            return self.held
        owners = [(plan.claim, plan.name) for plan in self.planned for _ in range(plan.count)]
        rows = self.plain.rows(slot)
        return (
            *self.held,
            *(Pick(claim, name, row) for (claim, name), row in zip(owners, rows, strict=False)),
        )

    def devices(self, slots: Int32) -> Int32:
        empty = np.zeros((0, len(slots)), np.int32)
        rows = self.plain.devices(slots, self.places) if self.plain is not None else empty
        if self.searched is not None:
            found, searched = self.searched.devices(slots)
            rows = np.where(searched, *_as_high(found, rows))
        if self.held:
            held = np.array([[pick.row] for pick in self.held], np.int32)
            rows = np.concatenate((np.repeat(held, len(slots), axis=1), rows))
        return rows


@dataclass(frozen=True, eq=False, slots=True)
class _Usable:
    """`mask` bool[n]: matches and not tainted; `doubtful` bool[slots]: a search must decide there."""

    mask: Bool
    doubtful: Bool


class Predictor:
    """Predicts for pods; keeps masks of requests it has seen, nothing else."""

    def __init__(self, verdicts: VerdictColumns, searcher: Searcher) -> None:
        self._verdicts = verdicts
        self._searcher = searcher
        self._usable: OrderedDict[tuple[object, ...], _Usable] = OrderedDict()
        self._usable_at: Topology | None = None
        self._special = CodedColumn(lambda _, d: bool(d.allow_multiple_allocations or d.consumes_counters))
        self._taints = CodedColumn(lambda _, device: blocking_taints(device))
        self._available: tuple[object, Topology, frozenset[int], Bool] | None = None
        self._last: tuple[tuple[object, ...], PlainFit] | None = None
        self._places = CandidatePlaces()

    def predict(
        self, demand: Demand, slots: Int32, snapshot: Snapshot, assumed: frozenset[int] = frozenset()
    ) -> Predictions:
        """Predict for the nodes in `slots` (int32[n], -1 for a node that the ledger does not know).

        `assumed`: rows that pods in flight will probably take; they count as taken.
        """
        topology = snapshot.topology
        status = np.zeros(len(slots), np.int8)
        free = total = np.zeros(len(slots), np.int32)
        held = tuple(_held(demand, topology))
        if demand.missing:
            status[:] = status_of(Unpredicted.CLAIM_UNKNOWN)
            nothing = _Picks((), None, (), None, self._places)
            return Predictions(topology, slots, status, free, total, nothing, {})
        on_plugin = _left_to_plugins(demand, slots, snapshot)
        asked = np.where(on_plugin, -1, slots)
        planned = _plan(demand, snapshot)
        fit: PlainFit | None = None
        searched = np.full(len(slots), planned is None)
        if planned:
            fit, doubtful = self._fit(planned, snapshot, assumed)
            known = np.maximum(asked, 0)
            status = np.where(fit.fits[known], status, status_of(Unpredicted.NO_FIT)).astype(np.int8)
            searched = (fit.unsure | doubtful)[known]
            free, total = fit.free[known], fit.total[known]
        elif planned is None:
            counted = self._count(demand, snapshot, assumed)
            if counted is not None:
                free, total = (amounts[np.maximum(slots, 0)] for amounts in counted)
        found: Searched | None = None
        notes: dict[int, str] = {}
        searched &= asked >= 0
        if searched.any():
            indices = np.nonzero(searched)[0]
            found = self._searcher.fit(demand, asked[indices], snapshot, assumed)
            status[indices] = found.status
            notes = {int(indices[at]): note for at, note in found.notes.items()}
        status[on_plugin] = status_of(Unpredicted.COUNT_ONLY)
        status[slots < 0] = status_of(Unpredicted.NODE_UNKNOWN)
        picks = _Picks(held, fit, planned or (), found, self._places)
        return Predictions(topology, slots, status, free, total, picks, notes)

    def _fit(
        self, planned: Sequence[_Planned], snapshot: Snapshot, assumed: frozenset[int]
    ) -> tuple[PlainFit, Bool]:
        topology = snapshot.topology
        usable = [self._usable_for(plan, topology) for plan in planned]
        doubtful = usable[0].doubtful
        for more in usable[1:]:
            doubtful = doubtful | more.doubtful
        counts = tuple((plan.key, plan.count) for plan in planned)
        mark = (counts, snapshot.occupancy, topology, assumed)
        if self._last is not None and _same(self._last[0], mark):
            return self._last[1], doubtful
        available = self._free(snapshot, assumed)
        requests = [PlainRequest(use.mask, plan.count) for use, plan in zip(usable, planned, strict=True)]
        fit = fit_plain(topology, available, requests)
        self._last = (mark, fit)
        return fit, doubtful

    def _count(
        self, demand: Demand, snapshot: Snapshot, assumed: frozenset[int]
    ) -> tuple[Int32, Int32] | None:
        """Free and total devices by slot for the first request, where the search has to place the claims."""
        first = next((r for c in demand.all_claims for r in c.spec.devices.requests or ()), None)
        form = (first.exactly or next(iter(first.first_available or ()), None)) if first is not None else None
        device_class = snapshot.classes.by_name.get(form.device_class_name) if form is not None else None
        if form is None or device_class is None:
            return None
        exact = ExactDeviceRequest(selectors=form.selectors, tolerations=form.tolerations)
        mask = self._usable_for(_Planned("", "", exact, device_class), snapshot.topology).mask
        topology = snapshot.topology
        return topology.per_node(mask & self._free(snapshot, assumed)), topology.per_node(mask)

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

    def _usable_for(self, plan: _Planned, topology: Topology) -> _Usable:
        if self._usable_at is not topology:
            self._usable.clear()
            self._usable_at = topology
        key = plan.key
        kept = self._usable.get(key)
        if kept is not None:
            self._usable.move_to_end(key)
            return kept
        verdict = np.ones(topology.rows, np.int8)
        for expression in _expressions(plan.exact, plan.device_class):
            column = self._verdicts.over(expression, topology)
            # An error counts where everything before it held: selectors are tried in order.
            verdict = np.where(verdict == 1, column, verdict)
        order, rows, tolerations = topology.order, topology.rows, plan.exact.tolerations or ()
        special = self._special.where(topology.table, bool)[:rows]
        blocked = self._taints.where(topology.table, lambda held: not tolerated(held, tolerations))[:rows]
        matching = verdict[order] == 1
        doubtful: Bool = topology.per_node((verdict[order] == -1) | (matching & special[order])) > 0
        doubtful |= topology.grouped
        if topology.wide and (not len(topology.wide_rows) or (verdict[topology.wide_rows] != 0).any()):
            doubtful = np.ones(len(topology.names), np.bool_)
        usable = self._usable[key] = _Usable(matching & ~blocked[order], doubtful)
        while len(self._usable) > _CACHED:
            self._usable.popitem(last=False)
        return usable


def _as_high(left: Int32, right: Int32) -> tuple[Int32, Int32]:
    """Two tables of rows with -1 below the lower one."""
    height = max(len(left), len(right))
    first, second = (
        np.pad(table, ((0, height - len(table)), (0, 0)), constant_values=-1) for table in (left, right)
    )
    return first, second


def _held(demand: Demand, topology: Topology) -> Iterable[Pick]:
    """Devices of claims that are allocated already."""
    for claim in demand.allocated:
        allocation = claim.status.allocation
        for result in (allocation.devices.results if allocation is not None else None) or ():
            row = topology.table.row_of.get(DeviceID(result.driver, result.pool, result.device))
            if row is not None:
                yield Pick(claim.metadata.name, result.request, row)


def _left_to_plugins(demand: Demand, slots: Int32, snapshot: Snapshot) -> Bool:
    """Candidates on which the kubelet picks devices, so that only counts are known, bool[n].

    Without a class behind any extended resource these say nothing of the claims, which are alike everywhere.
    """
    if demand.backed is None:
        return np.full(len(slots), bool(demand.extended) and not demand.claims and not demand.allocated)
    mask = np.zeros(len(slots), np.bool_)
    for name in demand.extended:
        allocatable = snapshot.nodes.allocatable.get(name)
        if allocatable is not None:
            mask |= allocatable[np.maximum(slots, 0)] > 0
    return mask


def _plan(demand: Demand, snapshot: Snapshot) -> list[_Planned] | None:
    """The requests in the scheduler's order, None when counting can't answer all of them."""
    planned: list[_Planned] = []
    for claim in demand.all_claims:
        if claim.spec.devices.constraints:
            return None
        for request in claim.spec.devices.requests or ():
            exact = _plain_request(request)
            device_class = snapshot.classes.by_name.get(exact.device_class_name) if exact else None
            if exact is None or device_class is None:
                return None
            planned.append(_Planned(claim.metadata.name, request.name, exact, device_class))
        if sum(plan.count for plan in planned if plan.claim == claim.metadata.name) > MAX_RESULTS:
            return None
    return planned


def _plain_request(request: DeviceRequest) -> ExactDeviceRequest | None:
    """The request when counting can answer it."""
    exact = request.exactly
    if exact is None or request.first_available:
        return None
    if exact.admin_access or exact.capacity is not None or exact.derived_attributes:
        return None
    return exact if exact.allocation_mode == "ExactCount" else None


def _expressions(request: ExactDeviceRequest, device_class: DeviceClass) -> Iterable[str]:
    """Class selectors, then the request's own: the order in which the allocator asks."""
    for selector in (*(device_class.spec.selectors or ()), *(request.selectors or ())):
        yield selector.cel.expression if selector.cel is not None else ""


def _same(left: tuple[object, ...], right: tuple[object, ...]) -> bool:
    return left[0] == right[0] and left[1] is right[1] and left[2] is right[2] and left[3] == right[3]
