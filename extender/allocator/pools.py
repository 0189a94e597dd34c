"""The resource pools of a node: which slices count, whether a pool is complete and valid, in which order.

Owns upstream's GatherPools (structured/internal/experimental/pools_experimental.go). Never: claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from extender.api.core import Node
from extender.api.resource import ResourceSlice
from extender.model.device import DeviceID

from .candidates import Candidate, CounterUse, PoolID, candidate_of, counter_uses, device_place, slice_place
from .features import Features
from .nodeselector import node_matches
from .outcome import Abort, Failure
from .quantities import nano_of

CounterSets = dict[str, dict[str, int]]
"""Counter values by counter set and counter, in units of 1e-9."""


class SliceIndex:
    """All slices, found by node and by pool; build it once when many nodes are asked about."""

    __slots__ = ("_by_node", "_by_pool", "_shared")

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._by_node: dict[str, list[ResourceSlice]] = {}
        self._by_pool: dict[PoolID, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        for slice_ in slices:
            spec = slice_.spec
            self._by_pool.setdefault(PoolID(spec.driver, spec.pool.name), []).append(slice_)
            if spec.node_name:
                self._by_node.setdefault(spec.node_name, []).append(slice_)
            else:
                self._shared.append(slice_)

    def for_node(self, name: str) -> Sequence[ResourceSlice]:
        """Return the slices of the node, then those that are not local to any node."""
        return [*self._by_node.get(name, ()), *self._shared]

    def of_pool(self, pool: PoolID) -> Sequence[ResourceSlice]:
        """Return every slice of a pool, of all generations and nodes."""
        return self._by_pool.get(pool, ())


@dataclass(slots=True, eq=False)
class Pool:
    """A pool seen from one node; an incomplete or invalid one has no candidates."""

    id: PoolID
    incomplete: bool = False
    invalid_reason: str = ""
    candidates: tuple[Candidate, ...] = ()
    counter_sets: CounterSets = field(default_factory=dict)
    consumers: tuple[tuple[DeviceID, tuple[CounterUse, ...]], ...] = ()
    """Every device of the pool that takes counters, those of other nodes included."""
    has_negative_counters: bool = False
    binding_conditions: bool = False

    @property
    def usable(self) -> bool:
        """Whether devices may be allocated from the pool."""
        return not self.incomplete and not self.invalid_reason


@dataclass(slots=True, eq=False)
class Pools:
    """The pools of one node in the order of the search, with what may be remembered between attempts.

    `failure` is set when node selection could not be evaluated: then no attempt on this node can succeed.
    `memo` holds what depends only on this object (verdicts of selectors, resolved capacities); it is filled
    as needed and never changes an answer.
    """

    node: Node
    features: Features
    pools: tuple[Pool, ...]
    failure: Failure | None = None
    candidates: tuple[Candidate, ...] = field(init=False)
    by_id: dict[PoolID, Pool] = field(init=False)
    memo: dict[object, list[object]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.candidates = tuple(device for pool in self.pools for device in pool.candidates)
        self.by_id = {pool.id: pool for pool in self.pools}


def gather_pools(node: Node, slices: SliceIndex | Iterable[ResourceSlice], features: Features) -> Pools:
    """Collect the pools whose devices can be reached from a node.

    `slices` are all slices of the cluster: whether a pool is complete or out of date depends on slices for
    other nodes too. Never raises: a node selector that can't be parsed becomes the result's `failure`.
    """
    index = slices if isinstance(slices, SliceIndex) else SliceIndex(slices)
    try:
        found = _relevant(node, index.for_node(node.metadata.name), features)
        pools = [
            pool
            for pool_id, targeting in found.items()
            if (pool := _pool(pool_id, targeting, index, features)) is not None
        ]
    except Abort as abort:
        return Pools(node, features, (), Failure("fatal", f"gather pool information: {abort.text}"))
    pools.sort(key=lambda pool: (pool.binding_conditions, pool.id))  # code points sort as UTF-8 bytes do
    return Pools(node, features, tuple(pools))


def _relevant(
    node: Node, slices: Iterable[ResourceSlice], features: Features
) -> dict[PoolID, list[ResourceSlice]]:
    """The slices for the node by pool, each pool at the highest generation that the node sees."""
    pools: dict[PoolID, list[ResourceSlice]] = {}
    for slice_ in slices:
        spec = slice_.spec
        if not features.partitionable_devices and (
            spec.per_device_node_selection is not None or spec.shared_counters
        ):
            continue
        if not features.compatibility_groups and _uses_groups(slice_):
            continue  # co-allocation could not be checked; its absence makes the pool incomplete
        if not _targets(node, slice_):
            continue
        pool_id = PoolID(spec.driver, spec.pool.name)
        known = pools.get(pool_id)
        if known is None or spec.pool.generation > known[0].spec.pool.generation:
            pools[pool_id] = [slice_]
        elif spec.pool.generation == known[0].spec.pool.generation:
            known.append(slice_)
    return pools


def _targets(node: Node, slice_: ResourceSlice) -> bool:
    place = slice_place(slice_)
    name = slice_.metadata.name
    if place.node_name or place.all_nodes or place.selector is not None:
        try:
            return node_matches(node, place)
        except Abort as abort:
            raise Abort(f"failed to perform node selection for slice {name}: {abort.text}") from abort
    if not slice_.spec.per_device_node_selection:
        return False  # nothing known is set: some future kind of selection
    for device in slice_.spec.devices or ():
        try:
            if node_matches(node, device_place(device)):
                return True
        except Abort as abort:
            raise Abort(
                f"failed to perform node selection for device {device.name} in slice {name}: {abort.text}"
            ) from abort
    return False


def _uses_groups(slice_: ResourceSlice) -> bool:
    return any(
        use.compatibility_groups
        for device in slice_.spec.devices or ()
        for use in device.consumes_counters or ()
    )


def _pool(
    pool_id: PoolID, targeting: list[ResourceSlice], index: SliceIndex, features: Features
) -> Pool | None:
    """Build a pool; None when a newer generation exists that the node does not see."""
    info = targeting[0].spec.pool
    if len(targeting) == info.resource_slice_count:
        return _build(pool_id, targeting, (), features)
    everywhere = index.of_pool(pool_id)
    if any(slice_.spec.pool.generation > info.generation for slice_ in everywhere):
        return None
    same = [
        slice_
        for slice_ in everywhere
        if slice_.spec.pool.generation == info.generation
        and (features.compatibility_groups or not _uses_groups(slice_))
    ]
    if len(same) != info.resource_slice_count:
        return Pool(pool_id, incomplete=True)
    return _build(pool_id, targeting, same, features)


def _build(
    pool_id: PoolID, targeting: list[ResourceSlice], everywhere: Sequence[ResourceSlice], features: Features
) -> Pool:
    ordered = sorted(targeting, key=lambda slice_: slice_.metadata.name)
    others: list[ResourceSlice] = []
    if len(ordered) < len(everywhere):
        names = {slice_.metadata.name for slice_ in ordered}
        others = [slice_ for slice_ in everywhere if slice_.metadata.name not in names]
    partitionable = features.partitionable_devices

    def holds_counters(slice_: ResourceSlice) -> bool:
        return partitionable and bool(slice_.spec.shared_counters)

    device_slices = [slice_ for slice_ in ordered if not holds_counters(slice_)]
    if reason := _duplicate_device(device_slices):
        return Pool(pool_id, invalid_reason=reason)
    pool = Pool(pool_id)
    if partitionable:
        not_targeting = [slice_ for slice_ in others if not holds_counters(slice_)]
        counter_slices = [slice_ for slice_ in (*ordered, *others) if holds_counters(slice_)]
        reason = _add_counters(pool, counter_slices, [*device_slices, *not_targeting])
        if reason:
            return Pool(pool_id, invalid_reason=reason)
    pool.candidates = tuple(
        candidate_of(device, slice_) for slice_ in device_slices for device in slice_.spec.devices or ()
    )
    pool.binding_conditions = any(
        candidate.device.binding_conditions is not None for candidate in pool.candidates
    )
    return pool


def _duplicate_device(slices: Iterable[ResourceSlice]) -> str:
    seen: set[str] = set()
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            if device.name in seen:
                return f"duplicate device name {device.name}"
            seen.add(device.name)
    return ""


def _add_counters(
    pool: Pool, counter_slices: Iterable[ResourceSlice], device_slices: Iterable[ResourceSlice]
) -> str:
    """Fill in counter sets and consumers; return what makes the pool invalid."""
    for slice_ in counter_slices:
        for counter_set in slice_.spec.shared_counters or ():
            if counter_set.name in pool.counter_sets:
                return f"duplicate counter set name {counter_set.name}"
            pool.counter_sets[counter_set.name] = {
                name: nano_of(counter.value) for name, counter in (counter_set.counters or {}).items()
            }
    consumers = []
    for slice_ in device_slices:
        spec = slice_.spec
        for device in spec.devices or ():
            if not device.consumes_counters:
                continue
            uses = counter_uses(device)
            for use in uses:
                known = pool.counter_sets.get(use.counter_set)
                if known is None:
                    return f"counter set {use.counter_set} not found"
                for name, amount in use.counters:
                    if name not in known:
                        return f"counter {name} not found in counter set {use.counter_set}"
                    pool.has_negative_counters = pool.has_negative_counters or amount < 0
            consumers.append((DeviceID(spec.driver, spec.pool.name, device.name), uses))
    pool.consumers = tuple(consumers)
    return ""
