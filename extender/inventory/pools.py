"""Pools: slices as published, their generation and completeness, and which nodes they belong to.

A pool is *local* when all slices of its newest generation name one and the same node: those devices go into
the columns. All other pools (network-attached, several nodes, selected per device) are *wide*.
Rules: dynamic-resource-allocation structured/internal pools (GatherPools).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from extender.api.resource import DeviceTaintRule, ResourceSlice
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
    valid: bool  # no device name twice
    shape: tuple[object, ...]  # all of the pool that is not a device: equal for pools that behave alike

    @property
    def complete(self) -> bool:
        """All slices of the newest generation have been published."""
        return len(self.slices) == self.expected


class PoolTable:
    """Slices by name and by pool; the ledger is its only writer."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self._names: dict[PoolKey, dict[str, ResourceSlice]] = {}
        self._states: dict[PoolKey, PoolState] = {}
        self._local: dict[str, set[PoolKey]] = {}
        self._wide: set[PoolKey] = set()
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
            patched = [with_rules(member, self._rules.values()) for member in members.values()]
            state = self._states[key] = _state(key, patched)
            if state.node is None:
                self._wide.add(key)
            else:
                nodes.add(state.node)
                self._local.setdefault(state.node, set()).add(key)
        return nodes

    def rules(self) -> Iterable[DeviceTaintRule]:
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

    def wide(self) -> list[PoolState]:
        """All pools that are not local to one node."""
        return [self._states[key] for key in sorted(self._wide)]

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
    newest = sorted(
        (member for member in members if member.spec.pool.generation == generation),
        key=lambda member: member.metadata.name,
    )
    node = newest[0].spec.node_name
    # Slices of an older generation elsewhere still count for their own node: such a pool is not simple.
    local = bool(node) and all(member.spec.node_name == node for member in members)
    names = [device.name for member in newest for device in member.spec.devices or ()]
    devices = tuple(len(member.spec.devices or ()) for member in newest)
    counters = tuple(
        msgspec.json.encode(member.spec.shared_counters) for member in newest if member.spec.shared_counters
    )
    binding = any(d.binding_conditions for member in newest for d in member.spec.devices or ())
    valid = len(names) == len(set(names))
    complete = len(newest) == newest[0].spec.pool.resource_slice_count
    return PoolState(
        key=key,
        generation=generation,
        slices=tuple(newest),
        published=tuple(sorted(members, key=lambda member: member.metadata.name)),
        expected=newest[0].spec.pool.resource_slice_count,
        node=node if local else None,
        binding=binding,
        valid=valid,
        shape=(key.driver, binding, valid, complete, devices, counters),
    )
