"""The full search, once per distinct node shape: nodes that look alike to a claim get the same answer.

A shape is everything the search can depend on: the node's local pools (but for device names), what selectors
and constraints read of each device, what is taken and consumed, and which wide pools the node reaches.
Answers are kept by position, so a node's own devices can be named. The kept answers depend on nothing else,
so they outlive snapshots; the store is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import msgspec
import numpy as np
import numpy.typing as npt

from extender.allocator.allocate import allocate
from extender.allocator.candidates import device_place, slice_place
from extender.allocator.demand import Demand
from extender.allocator.evaluator import SelectorEvaluator
from extender.allocator.features import Features
from extender.allocator.nodeselector import node_matches
from extender.allocator.outcome import Abort, Allocation, Failure, NoFit, device_of
from extender.allocator.pools import gather_pools
from extender.allocator.prediction import DeviceRows, Pick, Unpredicted, status_of
from extender.allocator.quantities import quantity_of
from extender.allocator.state import AllocatedState, Holdings, merged
from extender.api.core import Node
from extender.api.quantity import Quantity
from extender.api.resource import Device, DeviceClass, ResourceClaim
from extender.inventory.claims import Holding
from extender.inventory.devices import CodedColumn, DeviceTable, Int32, group_rows
from extender.inventory.occupancy import Occupancy
from extender.inventory.pools import PoolState
from extender.inventory.snapshot import Snapshot
from extender.inventory.topology import Topology
from extender.model.device import DeviceFacts, DeviceID

_KEPT = 20_000
_COLUMNS = 64

Relevant = Callable[[str], frozenset[str] | None]
"""The attributes ("domain/id") that an expression can read; None: any of them."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer by position: (claim, request, place in the node's devices, or ~place among wide rows)."""

    places: tuple[tuple[int, str, int], ...]
    failure: Unpredicted | None
    note: str


_TOO_MANY = _Kept((), Unpredicted.GAVE_UP, "too many node shapes in one call")


class ShapeAnswers:
    """What was found for each node (predict.Searched); devices are named when asked for."""

    def __init__(
        self,
        topology: Topology,
        slots: Int32,
        group: Int32,
        answers: Sequence[_Kept],
        claims: Sequence[str],
    ) -> None:
        """`group` int32[m]: which of `answers` belongs to each of `slots` int32[m]."""
        self._topology = topology
        self._answers = answers
        self._claims = claims
        self._of_slot = np.full(len(topology.names), -1, np.int32)
        self._of_slot[slots] = group
        codes = [0 if kept.failure is None else status_of(kept.failure) for kept in answers]
        self.status = np.array(codes, np.int8)[group]
        noted = {number for number, kept in enumerate(answers) if kept.note}
        self.notes = (
            {at: answers[number].note for at, number in enumerate(group.tolist()) if number in noted}
            if noted
            else {}
        )

    def picks(self, slot: int) -> tuple[Pick, ...] | None:
        """Devices of a searched node; None for a node that was not searched."""
        number = int(self._of_slot[slot])
        if number < 0:
            return None
        topology = self._topology
        rows = topology.order[topology.starts[slot] : topology.starts[slot + 1]]
        return tuple(
            Pick(self._claims[claim], request, int(rows[at] if at >= 0 else topology.wide_rows[~at]))
            for claim, request, at in self._answers[number].places
        )

    def devices(self, wanted: npt.NDArray[np.bool_]) -> tuple[DeviceRows, npt.NDArray[np.bool_]]:
        """Devices of all searched nodes in `wanted` (bool[slots]), and which nodes were searched."""
        topology = self._topology
        slots: list[Int32] = []
        rows: list[Int32] = []
        searched = self._of_slot >= 0
        asked = np.nonzero(wanted & searched)[0].astype(np.int32)
        group = self._of_slot[asked]
        for number in np.unique(group).tolist():
            mine = asked[group == number]
            for _, _, at in self._answers[number].places:
                slots.append(mine)
                if at >= 0:
                    rows.append(topology.order[topology.starts[mine] + at])
                else:
                    rows.append(np.full(len(mine), topology.wide_rows[~at], np.int32))
        empty = np.zeros(0, np.int32)
        return DeviceRows(np.concatenate([empty, *slots]), np.concatenate([empty, *rows])), searched


@dataclass(frozen=True, eq=False, slots=True)
class _Combined:
    """Codes of several columns together, int32[rows], for a table at a version; `known` numbers them."""

    table: DeviceTable
    version: int
    codes: Int32
    known: dict[tuple[int, ...], int]


class ShapeSearch:
    """Searches shapes; `budget` bounds the searches of one call, `steps` those of one search."""

    def __init__(
        self,
        evaluator: SelectorEvaluator,
        relevant: Relevant,
        features: Features,
        *,
        steps: int = 100_000,
        budget: int = 500,
    ) -> None:
        self._evaluator = evaluator
        self._relevant = relevant
        self._features = features
        self._steps = steps
        self._budget = budget
        self._kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
        self._contents = CodedColumn(_content)
        self._attributes: OrderedDict[str, CodedColumn] = OrderedDict()
        self._combined: OrderedDict[tuple[str, ...], _Combined] = OrderedDict()
        self._shares: dict[tuple[tuple[str, Quantity], ...], int] = {}
        self._numbered: DeviceTable | None = None
        self._consumption: dict[int, tuple[tuple[Holding, ...], int]] = {}
        self._used: tuple[Occupancy, DeviceTable, frozenset[int], Int32] | None = None
        self._reach_of: tuple[Sequence[Node | None], tuple[PoolState, ...]] = ((), ())
        self._reach: dict[int, tuple[bool, ...] | str] = {}
        self._wide: tuple[tuple[PoolState, ...], bytes] = ((), b"")
        self._numbers = count()

    def fit(self, demand: Demand, slots: Int32, snapshot: Snapshot, assumed: frozenset[int]) -> ShapeAnswers:
        """Search the nodes in `slots` (int32[m]); rows in `assumed` count as taken."""
        topology = snapshot.topology
        claims = demand.all_claims
        self._make_room(topology.table)
        codes, uses = self._codes(claims, snapshot), self._uses(snapshot, assumed)
        asked = (
            self._claims_key(claims, snapshot.classes.by_name),
            self._wide_shape(topology),
            codes[topology.wide_rows].tobytes(),
            uses[topology.wide_rows].tobytes(),
        )
        group = np.zeros(len(slots), np.int32)
        answers: list[_Kept] = []
        searches = 0
        for at, shapes in self._shapes(topology, slots, codes, uses):
            number: dict[tuple[object, ...], int] = {}
            for position, shape in zip(at.tolist(), shapes, strict=True):
                known = number.get(shape)
                if known is None:
                    known = number[shape] = len(answers)
                    kept = self._kept.get((asked, shape))
                    if kept is None and searches < self._budget:
                        searches += 1
                        kept = self._search(claims, int(slots[position]), snapshot, assumed)
                        self._kept[asked, shape] = kept
                        if len(self._kept) > _KEPT:
                            self._kept.popitem(last=False)
                    answers.append(kept if kept is not None else _TOO_MANY)
                group[position] = known
        names = tuple(claim.metadata.name for claim in claims)
        return ShapeAnswers(topology, slots, group, answers, names)

    def _make_room(self, table: DeviceTable) -> None:
        """Start anew when codes are numbered in another table, or too many consumptions were numbered."""
        if self._numbered is table and len(self._shares) <= _KEPT:
            return
        self._numbered = table
        self._kept.clear()
        self._consumption.clear()
        self._shares.clear()
        self._used = None

    def _shapes(
        self, topology: Topology, slots: Int32, codes: Int32, uses: Int32
    ) -> Iterable[tuple[npt.NDArray[np.intp], list[tuple[object, ...]]]]:
        """Positions in `slots` of nodes with equally many devices, and the shape of each of them."""
        starts, order = topology.starts, topology.order
        state = (codes[order].astype(np.int64) << 32) | uses[order]
        begins = starts[slots]
        lengths = starts[slots + 1] - begins
        for length in np.unique(lengths).tolist():
            at = np.nonzero(lengths == length)[0]
            text = state[begins[at][:, None] + np.arange(length, dtype=np.int32)].tobytes()
            width = length * state.itemsize
            alike = topology.pools_shape[slots[at]].tolist()
            yield (
                at,
                [
                    (
                        text[number * width : (number + 1) * width],
                        alike[number],
                        self._reached(topology, slot) if topology.wide else (),
                        _declared(topology.nodes[slot]),
                    )
                    for number, slot in enumerate(slots[at].tolist())
                ],
            )

    def _search(
        self,
        claims: tuple[ResourceClaim, ...],
        slot: int,
        snapshot: Snapshot,
        assumed: frozenset[int],
    ) -> _Kept:
        topology = snapshot.topology
        node = topology.nodes[slot] or Node()
        name = topology.names[slot]
        local = topology.pools.get(name, ())
        slices = [published for pool in (*local, *topology.wide) for published in pool.published]
        pools = gather_pools(node, slices, self._features)
        rows = topology.order[topology.starts[slot] : topology.starts[slot + 1]].tolist()
        wide = topology.wide_rows.tolist()
        in_use = _in_use(snapshot, [*rows, *wide], assumed)
        outcome = allocate(
            node,
            claims,
            snapshot.classes.by_name,
            pools,
            in_use,
            self._features,
            self._steps,
            evaluator=self._evaluator,
        )
        match outcome:
            case Allocation():
                place_of = {topology.table.ids[row]: ~at for at, row in enumerate(wide)}
                place_of |= {topology.table.ids[row]: at for at, row in enumerate(rows)}
                places = tuple(
                    (claim, result.request, place_of[device_of(result)])
                    for claim, allocation in enumerate(outcome.results)
                    for result in allocation.devices.results or ()
                )
                return _Kept(places, None, "")
            case NoFit():
                return _Kept((), Unpredicted.NO_FIT, "")
            case Failure():
                return _Kept((), Unpredicted.FAILED, outcome.text)
            case _:
                return _Kept((), Unpredicted.GAVE_UP, str(outcome))

    def _codes(self, claims: tuple[ResourceClaim, ...], snapshot: Snapshot) -> Int32:
        """One number a row, equal for devices whose publication the claims can't tell apart, int32[rows]."""
        topology = snapshot.topology
        table, rows = topology.table, topology.rows
        names = tuple(self._names(claims, snapshot.classes.by_name))
        kept = self._combined.get(names)
        if kept is not None and kept.table is table and kept.version == table.version:
            return kept.codes[:rows]
        columns = [self._contents.over(table), *(self._column(name).over(table) for name in names)]
        first, group = group_rows(columns)
        known = kept.known if kept is not None and kept.table is table else {}
        distinct = np.stack([column[first] for column in columns], axis=1)
        lookup = np.fromiter(
            # Never a number twice: an answer that is kept must not fit a column made anew.
            (
                known[key] if (key := tuple(codes)) in known else known.setdefault(key, next(self._numbers))
                for codes in distinct.tolist()
            ),
            np.int32,
            len(first),
        )
        combined = self._combined[names] = _Combined(table, table.version, lookup[group], known)
        if len(self._combined) > _COLUMNS:
            self._combined.popitem(last=False)
        return combined.codes[:rows]

    def _uses(self, snapshot: Snapshot, assumed: frozenset[int]) -> Int32:
        """How each device is in use, int32[rows]: bit 0 held whole, the rest numbers what shares consume."""
        table, rows = snapshot.topology.table, snapshot.topology.rows
        kept = self._used
        if (
            kept is not None
            and kept[0] is snapshot.occupancy
            and kept[1] is table
            and kept[2] == assumed
            and len(kept[3]) == rows
        ):
            return kept[3]
        uses = snapshot.occupancy.taken[:rows].astype(np.int32)
        if assumed:
            uses[[row for row in assumed if row < rows]] = 1
        for row in np.nonzero(snapshot.occupancy.shared[:rows])[0].tolist():
            uses[row] += 2 + 2 * self._share_code(row, snapshot)
        self._used = (snapshot.occupancy, table, assumed, uses)
        return uses

    def _share_code(self, row: int, snapshot: Snapshot) -> int:
        """Number of what all shares of a device consume; worked out anew when its holders change."""
        device = snapshot.topology.table.ids[row]
        holdings = snapshot.held_by(device)
        kept = self._consumption.get(row)
        if kept is not None and kept[0] is holdings:
            return kept[1]
        consumed = tuple(sorted(_consumed(snapshot, device).items()))
        code = self._shares.setdefault(consumed, len(self._shares))
        self._consumption[row] = (holdings, code)
        return code

    def _names(self, claims: tuple[ResourceClaim, ...], classes: Mapping[str, DeviceClass]) -> list[str]:
        """Attributes that can matter to the claims; [""] stands for all of them."""
        names: set[str] = set()
        for expression in _expressions(claims, classes):
            reads = self._relevant(expression)
            if reads is None:
                return [""]
            names |= reads
        for claim in claims:
            for constraint in claim.spec.devices.constraints or ():
                names.update(filter(None, (constraint.match_attribute, constraint.distinct_attribute)))
        return sorted(names)

    def _column(self, name: str) -> CodedColumn:
        column = self._attributes.get(name)
        if column is None:
            column = self._attributes[name] = CodedColumn(_reader(name))
            self._combined.clear()  # the same column made anew numbers its values anew
            if len(self._attributes) > _COLUMNS:
                self._attributes.popitem(last=False)
        else:
            self._attributes.move_to_end(name)
        return column

    def _reached(self, topology: Topology, slot: int) -> tuple[object, ...]:
        """Which wide slices (or their devices) the node reaches, and where its own pools stand among them.

        The node's name stands for what can't be told.
        """
        if self._reach_of[0] is not topology.nodes or self._reach_of[1] is not topology.wide:
            self._reach_of, self._reach = (topology.nodes, topology.wide), {}
        reach = self._reach.get(slot)
        if reach is None:
            reach = self._reach[slot] = _reach(topology, slot)
        wide = [pool.key for pool in topology.wide]
        local = topology.pools.get(topology.names[slot], ())
        return (reach, tuple(bisect_left(wide, pool.key) for pool in local))

    def _wide_shape(self, topology: Topology) -> bytes:
        """All of the wide pools that is not in the rows of their devices."""
        if self._wide[0] is not topology.wide:
            shapes = [
                (pool.shape, pool.published if len(pool.published) > len(pool.slices) else ())
                for pool in topology.wide
            ]
            self._wide = (topology.wide, msgspec.json.encode(shapes))
        return self._wide[1]

    @staticmethod
    def _claims_key(claims: tuple[ResourceClaim, ...], classes: Mapping[str, DeviceClass]) -> bytes:
        named = sorted({name for claim in claims for name in _class_names(claim)})
        return msgspec.json.encode(
            ([claim.spec for claim in claims], [(name, classes.get(name)) for name in named])
        )


def _content(facts: DeviceFacts, device: Device) -> bytes:
    """All of a device that is not an attribute or its name."""
    return msgspec.json.encode(
        (
            facts.driver,
            device.capacity,
            device.consumes_counters,
            device.taints,
            device.allow_multiple_allocations,
            device.binds_to_node,
            device.binding_conditions,
            device.binding_failure_conditions,
            device.node_name is not None,
            device.node_selector,
            device.all_nodes,
        )
    )


def _reader(name: str) -> Callable[[DeviceFacts, Device], bytes]:
    """Read one attribute, by its full name or the bare one in its driver's domain; "" reads them all."""
    domain, _, bare = name.rpartition("/")

    def read(facts: DeviceFacts, _: Device) -> bytes:
        if not name:
            return msgspec.json.encode(facts.attributes, order="sorted")
        value = facts.attributes.get(name)
        if value is None and domain in {"", facts.driver}:
            value = facts.attributes.get(bare)
        return b"" if value is None else msgspec.json.encode(value)

    return read


def _expressions(claims: Iterable[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Iterable[str]:
    for claim in claims:
        for name in _class_names(claim):
            found = classes.get(name)
            for selector in (found.spec.selectors if found is not None else None) or ():
                if selector.cel is not None:
                    yield selector.cel.expression
        for request in claim.spec.devices.requests or ():
            for form in (request.exactly, *(request.first_available or ())):
                if form is None:
                    continue
                for selector in form.selectors or ():
                    if selector.cel is not None:
                        yield selector.cel.expression
                for derived in form.derived_attributes or ():
                    yield derived.expression


def _class_names(claim: ResourceClaim) -> Iterable[str]:
    for request in claim.spec.devices.requests or ():
        for form in (request.exactly, *(request.first_available or ())):
            if form is not None:
                yield form.device_class_name


def _in_use(snapshot: Snapshot, rows: Iterable[int], assumed: frozenset[int]) -> AllocatedState:
    """What is held of the devices in `rows`: the rest of the fleet can't matter to this node."""
    ids = snapshot.topology.table.ids
    devices: set[DeviceID] = set()
    shared: list[DeviceID] = []
    capacity: dict[DeviceID, Mapping[str, Quantity]] = {}
    for row in rows:
        device = ids[row]
        if row in assumed:
            devices.add(device)
        for holding in snapshot.held_by(device):
            if holding.share_id is None:
                devices.add(device)
            else:
                shared.append(device)
        if snapshot.occupancy.shared[row]:
            capacity[device] = _consumed(snapshot, device)
    return AllocatedState(Holdings(devices, frozenset(shared), capacity))


def _consumed(snapshot: Snapshot, device: DeviceID) -> dict[str, Quantity]:
    """Capacity that all shares of a device consume."""
    total: dict[str, Quantity] = {}
    for holding in snapshot.held_by(device):
        if holding.share_id is not None:
            total = merged(
                total, {name: quantity_of(text) for name, text in (holding.consumed or {}).items()}
            )
    return total


def _reach(topology: Topology, slot: int) -> tuple[bool, ...] | str:
    node = topology.nodes[slot]
    if node is None:
        return topology.names[slot]
    try:
        return tuple(
            node_matches(node, place)
            for pool in topology.wide
            for published in pool.published
            for place in (
                [device_place(device) for device in published.spec.devices or ()]
                if published.spec.per_device_node_selection
                else [slice_place(published)]
            )
        )
    except Abort:
        return topology.names[slot]


def _declared(node: Node | None) -> tuple[str, ...]:
    """Features that the node declares: they decide whether optional node operations are left out."""
    return tuple(node.status.declared_features or ()) if node is not None else ()
