"""Pools: slices as published, their generation and completeness, and which nodes they belong to.

A pool is *local* when all slices of its newest generation name one and the same node: those devices go into
the columns. All other pools (network-attached, several nodes, selected per device) are *wide*.
Rules: dynamic-resource-allocation structured/internal pools (GatherPools).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from extender.api.resource import Device, DeviceTaintRule, ResourceSlice
from extender.inventory.taintrules import rule_covers_pool, with_rules
from extender.model.ids import PoolKey


@dataclass(frozen=True, slots=True)
class PoolState:
    """What the slices of one pool add up to."""

    key: PoolKey
    generation: int
    slices: tuple[ResourceSlice, ...]  # newest generation only, by slice name, taint rules merged in
    published: tuple[ResourceSlice, ...]  # every generation, taint rules merged in
    expected: int
    node: str | None  # the one node of a local pool
    binding: bool  # a device has binding conditions: such pools go last
    valid: bool  # no device name or counter set twice, and every counter that is consumed exists
    groups: bool  # a device has compatibility groups: without that feature its slice does not count
    shape: tuple[object, ...]  # all of the pool that is not a device: equal for pools that behave alike

    @property
    def complete(self) -> bool:
        """All slices of the newest generation have been published."""
        return len(self.slices) == self.expected

    @property
    def usable(self) -> bool:
        """Devices may be allocated from the pool (seen from a node which all of its slices are for)."""
        return self.complete and self.valid

    def devices(self) -> Iterator[Device]:
        """Devices of the newest generation, slice by slice; one that is published twice comes twice."""
        for member in self.slices:
            if not member.spec.shared_counters:
                yield from member.spec.devices or ()

    def older_devices(self) -> Iterator[Device]:
        """Devices of older generations, which nodes that do not see the newest one may still use."""
        for member in self.published:
            if member.spec.pool.generation != self.generation:
                yield from member.spec.devices or ()


class PoolTable:
    """Slices by name and by pool; the ledger is its only writer."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self._names: dict[PoolKey, dict[str, ResourceSlice]] = {}
        self._states: dict[PoolKey, PoolState] = {}
        self._local: dict[str, set[PoolKey]] = {}
        self._wide: set[PoolKey] = set()
        self._wide_states: tuple[PoolState, ...] | None = None
        self._rules: dict[str, DeviceTaintRule] = {}

    def upsert_rule(self, rule: DeviceTaintRule) -> set[PoolKey]:
        """Add or update a taint rule; the pools that it touches, before or now."""
        touched = self.delete_rule(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        return touched | {key for key in self._names if rule_covers_pool(rule, key)}

    def delete_rule(self, name: str) -> set[PoolKey]:
        """Forget a taint rule; the pools that it touched."""
        before = self._rules.pop(name, None)
        return set() if before is None else {key for key in self._names if rule_covers_pool(before, key)}

    def upsert(self, published: ResourceSlice) -> set[PoolKey]:
        """Add or update a slice; the pools that changed (two when it moved between pools)."""
        touched = self._remove(published.metadata.name)
        key = pool_key(published)
        self.slices[published.metadata.name] = published
        self._names.setdefault(key, {})[published.metadata.name] = published
        touched.add(key)
        return touched

    def delete(self, name: str) -> set[PoolKey]:
        """Forget a slice; the pools that changed."""
        return self._remove(name)

    def settle(self, touched: Iterable[PoolKey]) -> set[str]:
        """Work out the touched pools anew; the nodes whose local pools changed."""
        nodes: set[str] = set()
        for key in touched:
            before = self._states.pop(key, None)
            if before is not None:
                if before.node is None:
                    self._wide.discard(key)
                    self._wide_states = None
                else:
                    nodes.add(before.node)
                    of_node = self._local[before.node]
                    of_node.discard(key)
                    if not of_node:
                        del self._local[before.node]
            members = self._names.get(key)
            if not members:
                self._names.pop(key, None)
                continue
            rules = self._rules.values()
            patched = [with_rules(m, rules) for m in members.values()] if rules else list(members.values())
            state = self._states[key] = _state(key, patched)
            if state.node is None:
                self._wide.add(key)
                self._wide_states = None
            else:
                nodes.add(state.node)
                self._local.setdefault(state.node, set()).add(key)
        return nodes

    def rules(self) -> Collection[DeviceTaintRule]:
        """All taint rules."""
        return self._rules.values()

    def state(self, key: PoolKey) -> PoolState | None:
        """What is known of a pool."""
        return self._states.get(key)

    def states(self) -> Iterable[PoolState]:
        """All pools."""
        return self._states.values()

    def local(self, node: str) -> list[PoolState]:
        """Local pools of a node in the allocator's order: driver, pool name; binding conditions last."""
        pools = [self._states[key] for key in self._local.get(node, ())]
        pools.sort(key=lambda pool: (pool.binding, pool.key.driver.encode(), pool.key.pool.encode()))
        return pools

    def wide(self) -> tuple[PoolState, ...]:
        """All pools that are not local to one node; the same tuple while none of them changes."""
        if self._wide_states is None:
            self._wide_states = tuple(self._states[key] for key in sorted(self._wide))
        return self._wide_states

    def _remove(self, name: str) -> set[PoolKey]:
        before = self.slices.pop(name, None)
        if before is None:
            return set()
        key = pool_key(before)
        self._names[key].pop(name, None)
        return {key}


def pool_key(published: ResourceSlice) -> PoolKey:
    """The pool that a slice belongs to."""
    return PoolKey(published.spec.driver, published.spec.pool.name)


def _state(key: PoolKey, members: list[ResourceSlice]) -> PoolState:
    generation = max(member.spec.pool.generation for member in members)
    published = tuple(sorted(members, key=lambda member: member.metadata.name))
    newest = tuple(member for member in published if member.spec.pool.generation == generation)
    node = newest[0].spec.node_name
    # Slices of an older generation elsewhere still count for their own node: such a pool is not simple.
    local = bool(node) and all(member.spec.node_name == node for member in members)
    names: set[str] = set()
    consumers: list[Device] = []
    count = 0
    binding = False
    for member in newest:
        for device in (member.spec.devices if not member.spec.shared_counters else None) or ():
            count += 1
            names.add(device.name)
            binding = binding or device.binding_conditions is not None
            if device.consumes_counters:
                consumers.append(device)
    counted = bool(consumers) or any(member.spec.shared_counters for member in newest)
    valid = len(names) == count and (not counted or _counters_known(newest, consumers))
    groups = any(use.compatibility_groups for d in consumers for use in d.consumes_counters or ())
    expected = newest[0].spec.pool.resource_slice_count
    return PoolState(
        key=key,
        generation=generation,
        slices=newest,
        published=published,
        expected=expected,
        node=node if local else None,
        binding=binding,
        valid=valid,
        groups=groups,
        shape=(
            key.driver,
            binding,
            valid,
            len(newest) == expected,
            tuple(len(member.spec.devices or ()) for member in newest),
            tuple(msgspec.json.encode(m.spec.shared_counters) for m in newest if m.spec.shared_counters),
        ),
    )


def _counters_known(slices: Iterable[ResourceSlice], devices: Iterable[Device]) -> bool:
    sets: dict[str, Mapping[str, object]] = {}
    for member in slices:
        for counter_set in member.spec.shared_counters or ():
            if counter_set.name in sets:
                return False
            sets[counter_set.name] = counter_set.counters or {}
    return all(
        use.counter_set in sets and (use.counters or {}).keys() <= sets[use.counter_set].keys()
        for device in devices
        for use in device.consumes_counters or ()
    )
