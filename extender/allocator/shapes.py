"""The full search, once per distinct node shape: nodes that look alike to a claim get the same answer.

A shape is everything the search can depend on: the node's local pools (but for device names), what selectors
and constraints read of each device, what is taken and consumed, and which wide pools the node reaches.
Answers are kept by position, so a node's own devices can be named. The kept answers depend on nothing else,
so they outlive snapshots; the store is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from extender.allocator.allocate import allocate
from extender.allocator.candidates import device_place, slice_place
from extender.allocator.demand import Demand
from extender.allocator.devicecodes import DeviceCodes, Relevant, class_names
from extender.allocator.deviceuse import DeviceUse, in_use
from extender.allocator.evaluator import SelectorEvaluator
from extender.allocator.features import Features
from extender.allocator.nodeselector import node_matches
from extender.allocator.outcome import Abort, Allocation, Failure, NoFit, device_of
from extender.allocator.pools import gather_pools
from extender.allocator.prediction import Pick, Unpredicted, status_of
from extender.api.core import Node
from extender.api.resource import DeviceClass, ResourceClaim
from extender.inventory.devices import DeviceTable, Int32
from extender.inventory.pools import PoolState
from extender.inventory.snapshot import Snapshot
from extender.inventory.topology import Topology

_KEPT = 20_000


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
        rows = topology.devices_of(slot)
        return tuple(
            Pick(self._claims[claim], request, int(rows[at] if at >= 0 else topology.wide_rows[~at]))
            for claim, request, at in self._answers[number].places
        )

    def devices(self, slots: Int32) -> tuple[Int32, npt.NDArray[np.bool_]]:
        """Rows for `slots` (int32[m]), int32[k, m] with -1 for none; and which were searched, bool[m]."""
        topology = self._topology
        group = self._of_slot[slots]
        rows = np.full(
            (max((len(kept.places) for kept in self._answers), default=0), len(slots)), -1, np.int32
        )
        for number in np.unique(group[group >= 0]).tolist():
            mine = np.nonzero(group == number)[0]
            starts = topology.starts[slots[mine]]
            for into, (_, _, at) in zip(rows, self._answers[number].places, strict=False):
                into[mine] = topology.order[starts + at] if at >= 0 else topology.wide_rows[~at]
        return rows, group >= 0


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
        self._features = features
        self._steps = steps
        self._budget = budget
        self._kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
        self._codes = DeviceCodes(relevant)
        self._use = DeviceUse()
        self._numbered: DeviceTable | None = None
        self._reach_of: tuple[Sequence[Node | None], tuple[PoolState, ...]] = ((), ())
        self._reach: dict[int, tuple[bool, ...] | str] = {}
        self._wide: tuple[tuple[PoolState, ...], bytes] = ((), b"")

    def fit(self, demand: Demand, slots: Int32, snapshot: Snapshot, assumed: frozenset[int]) -> ShapeAnswers:
        """Search the nodes in `slots` (int32[m]); rows in `assumed` count as taken."""
        topology = snapshot.topology
        claims = demand.all_claims
        self._make_room(topology.table)
        codes = self._codes.over(claims, snapshot.classes.by_name, topology)
        uses = self._use.over(snapshot, assumed)
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
        if self._numbered is not table or len(self._use) > _KEPT:
            self._numbered = table
            self._kept.clear()
            self._use.clear()

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
        rows = topology.devices_of(slot).tolist()
        wide = topology.wide_rows.tolist()
        taken = in_use(snapshot, [*rows, *wide], assumed)
        outcome = allocate(
            node,
            claims,
            snapshot.classes.by_name,
            pools,
            taken,
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
        named = sorted({name for claim in claims for name in class_names(claim)})
        return msgspec.json.encode(
            ([claim.spec for claim in claims], [(name, classes.get(name)) for name in named])
        )


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
