"""Drift: what the ledger shows and a fresh list does not, and the other way round.

A watch that lost an event shows nothing of it; this does. Done in slices, so that the caller can let others
run in between. Never: the list itself, a clock, or a repair (a relist repairs).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from extender.inventory.claims import Holding, claim_holdings
from extender.inventory.ledger import Ledger
from extender.inventory.nodes import NATIVE
from extender.inventory.pods import TERMINAL, counted_requests
from extender.inventory.requests import is_extended_resource
from extender.inventory.snapshot import Snapshot
from extender.model.device import DeviceID
from extender.model.ids import ObjectKey

_SLICE = 200
"""Objects between two stops: a few milliseconds of work."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Keys of one kind: listed but not in the ledger, in the ledger but not listed, not the same in both.

    `different` also names nodes and claims of which the ledger's columns say something else than its objects.
    """

    missing: frozenset[ObjectKey] = field(default_factory=frozenset)
    extra: frozenset[ObjectKey] = field(default_factory=frozenset)
    different: frozenset[ObjectKey] = field(default_factory=frozenset)

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.different)

    def __and__(self, other: Drift) -> Drift:
        """What both say. A list and a watch are never of one instant: what two checks find is drift."""
        return Drift(self.missing & other.missing, self.extra & other.extra, self.different & other.different)


def compare(
    ledger: Ledger, listed: Mapping[str, Iterable[Any]]
) -> Generator[None, None, Mapping[str, Drift]]:
    """Compare the ledger as it stands at the first step with lists by kind; returns the drift by kind.

    Yields after every few milliseconds of work; events between two steps change nothing of what is compared.
    Objects of which the ledger has a newer version than the list are not different.
    """
    known = {kind: ledger.objects(kind) for kind in listed}
    snapshot = ledger.snapshot()
    yield
    found: dict[str, Drift] = {}
    for kind, objects in listed.items():
        held: dict[ObjectKey, Any] = {}
        for number, obj in enumerate(known[kind], 1):
            held[_key(obj)] = obj
            if number % _SLICE == 0:
                yield
        missing: set[ObjectKey] = set()
        different: set[ObjectKey] = set()
        for number, obj in enumerate(objects, 1):
            key = _key(obj)
            ours = held.pop(key, None)
            if ours is None:
                missing.add(key)
            elif ours is not obj and ours != obj and not _newer(ours, obj):
                different.add(key)
            if number % _SLICE == 0:
                yield
        found[kind] = Drift(frozenset(missing), frozenset(held), frozenset(different))
        yield
    for kind, check in (("ResourceClaim", _wrong_holders(snapshot)), ("Node", _wrong_amounts(snapshot))):
        wrong: set[ObjectKey] = set()
        for one in check:
            if one is None:
                yield
            else:
                wrong.add(one)
        if kind in found and wrong:
            drift = found[kind]
            found[kind] = Drift(drift.missing, drift.extra, drift.different | wrong)
    return found


def _wrong_holders(snapshot: Snapshot) -> Iterator[ObjectKey | None]:
    """Claims whose devices are not held by them in the columns, or which hold what they should not."""
    right: dict[DeviceID, list[Holding]] = {}
    for number, (key, record) in enumerate(snapshot.claims.items(), 1):
        for device, holding in claim_holdings(key, record.claim):
            right.setdefault(device, []).append(holding)
        if number % _SLICE == 0:
            yield None
    yield None
    row_of, rows = snapshot.topology.table.row_of, snapshot.topology.rows
    taken, shared = snapshot.occupancy.taken, snapshot.occupancy.shared
    for number, device in enumerate(chain(right, snapshot.holders), 1):
        held = right.get(device, [])
        shown = snapshot.held_by(device)
        row = row_of.get(device, rows)
        shows = (bool(taken[row]), bool(shared[row])) if row < rows else None
        if not _agree(held, shown, shows):
            yield from {holding.claim for holding in (*held, *shown)}
        if number % _SLICE == 0:
            yield None


def _agree(held: Sequence[Holding], shown: Sequence[Holding], columns: tuple[bool, bool] | None) -> bool:
    """Whether holders and columns (taken, shared; None without a row) show what claims hold of a device."""
    if len(held) != len(shown) or any(holding not in shown for holding in held):
        return False
    whole = sum(holding.share_id is None for holding in held)
    return columns is None or columns == (whole > 0, len(held) > whole)


def _wrong_amounts(snapshot: Snapshot) -> Iterator[ObjectKey | None]:
    """Nodes whose used amounts are not the sum of their pods."""
    right: dict[str, dict[str, int]] = {}
    for number, record in enumerate(snapshot.pods.values(), 1):
        pod = record.pod
        if pod.spec.node_name and pod.status.phase not in TERMINAL:
            sums = right.setdefault(pod.spec.node_name, {})
            for resource, amount in counted_requests(pod).items():
                if resource in NATIVE or is_extended_resource(resource):
                    sums[resource] = sums.get(resource, 0) + amount
        if number % _SLICE == 0:
            yield None
    yield None
    used = snapshot.nodes.used
    for number, (name, slot) in enumerate(snapshot.topology.slot_of.items(), 1):
        sums = right.get(name, {})
        if any(int(column[slot]) != sums.get(resource, 0) for resource, column in used.items()) or any(
            amount and resource not in used for resource, amount in sums.items()
        ):
            yield ObjectKey("", name)
        if number % _SLICE == 0:
            yield None


def _key(obj: Any) -> ObjectKey:
    return ObjectKey(obj.metadata.namespace, obj.metadata.name)


def _newer(ours: Any, listed: Any) -> bool:
    """Whether the ledger is ahead of the list. Versions count up (KEP-5504)."""
    left, right = ours.metadata.resource_version, listed.metadata.resource_version
    return left.isdecimal() and right.isdecimal() and int(left) > int(right)
