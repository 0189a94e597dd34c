"""Shared counters and compatibility groups: what the devices of a pool take from their counter sets.

Owns the running account of one search (upstream's checkAvailableCounters and compatibility_groups.go), keyed
by driver and pool name. Never: which devices are allocated, which it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .candidates import Candidate, CounterUse, PoolID
from .pools import Pool
from .state import AllocatedState


@dataclass(frozen=True, slots=True)
class GroupIntersection:
    """Compatibility groups that all members of a counter set share (KEP: none goes only with none).

    `groups` is None before the first member. An empty set without `none_declared` means that what is
    allocated already has nothing in common: nobody else may join.
    """

    groups: frozenset[str] | None = None
    none_declared: bool = False

    def admits(self, groups: frozenset[str]) -> bool:
        """Tell whether a device with these groups may join."""
        if self.groups is None:
            return True
        if not groups or self.none_declared:
            return not groups and self.none_declared
        return not self.groups.isdisjoint(groups)

    def add(self, groups: frozenset[str]) -> GroupIntersection:
        """Return the intersection with one more member."""
        if self.groups is None:
            return GroupIntersection(groups, none_declared=not groups)
        if self.none_declared or not groups:
            return self
        return GroupIntersection(self.groups & groups)


_NO_MEMBERS = GroupIntersection()
_Groups = dict[str, GroupIntersection]


class _Account:
    """The counters of one pool during a search: what is left of each counter, in units of 1e-9."""

    __slots__ = ("check_all", "groups", "left", "overdrawn")

    def __init__(self, pool: Pool, in_use: AllocatedState, *, with_groups: bool) -> None:
        self.left = {
            (counter_set, name): value
            for counter_set, counters in pool.counter_sets.items()
            for name, value in counters.items()
        }
        self.groups: _Groups = {}
        for device, uses in pool.consumers:
            if not in_use.allocated(device):
                continue
            for use in uses:
                for name, amount in use.counters:
                    self.left[use.counter_set, name] -= amount
                if with_groups:
                    self.groups[use.counter_set] = self.groups.get(use.counter_set, _NO_MEMBERS).add(
                        use.groups
                    )
        self.overdrawn = any(value < 0 for value in self.left.values())
        self.check_all = pool.has_negative_counters

    def reserve(self, uses: Iterable[CounterUse]) -> bool:
        """Take a device's counters; True when afterwards no counter of the whole pool is overdrawn."""
        left = self.left
        fits = True
        for use in uses:
            for name, amount in use.counters:
                key = use.counter_set, name
                value = left[key] - amount
                left[key] = value
                fits = fits and value >= 0
        if self.check_all:
            return all(value >= 0 for value in left.values())
        return fits and not self.overdrawn

    def release(self, uses: Iterable[CounterUse]) -> None:
        for use in uses:
            for name, amount in use.counters:
                self.left[use.counter_set, name] += amount


class CounterLedger:
    """The accounts of all pools in one search; a pool is opened when a device of it first asks."""

    __slots__ = ("_accounts", "_in_use", "_pools", "_with_groups")

    def __init__(self, pools: dict[PoolID, Pool], in_use: AllocatedState, *, with_groups: bool) -> None:
        self._pools = pools
        self._in_use = in_use
        self._with_groups = with_groups
        self._accounts: dict[PoolID, _Account] = {}

    def reserve(self, candidate: Candidate) -> Reservation | None:
        """Charge a device, or return None when its groups or counters do not allow it."""
        account = self._accounts.get(candidate.pool)
        if account is None:
            account = _Account(self._pools[candidate.pool], self._in_use, with_groups=self._with_groups)
            self._accounts[candidate.pool] = account
        before: list[tuple[str, GroupIntersection | None]] = []
        if self._with_groups:
            joined = _join(account.groups, candidate.uses)
            if joined is None:
                return None
            before = joined
        if not account.reserve(candidate.uses):
            account.release(candidate.uses)
            _leave(account.groups, before)
            return None
        return Reservation(account, candidate.uses, before)


class Reservation:
    """A device's charge, to be undone in the opposite order of reserving."""

    __slots__ = ("_account", "_before", "_uses")

    def __init__(
        self,
        account: _Account,
        uses: Sequence[CounterUse],
        before: Sequence[tuple[str, GroupIntersection | None]],
    ) -> None:
        self._account = account
        self._uses = uses
        self._before = before

    def undo(self) -> None:
        """Give the counters back."""
        self._account.release(self._uses)
        _leave(self._account.groups, self._before)


def _join(groups: _Groups, uses: Iterable[CounterUse]) -> list[tuple[str, GroupIntersection | None]] | None:
    before: list[tuple[str, GroupIntersection | None]] = []
    for use in uses:
        known = groups.get(use.counter_set)
        current = known or _NO_MEMBERS
        if not current.admits(use.groups):
            _leave(groups, before)
            return None
        before.append((use.counter_set, known))
        groups[use.counter_set] = current.add(use.groups)
    return before


def _leave(groups: _Groups, before: Iterable[tuple[str, GroupIntersection | None]]) -> None:
    for counter_set, known in reversed(list(before)):
        if known is None:
            groups.pop(counter_set, None)
        else:
            groups[counter_set] = known
