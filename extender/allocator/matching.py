"""Which devices of a node a request may get at all: selectors, node selection, and what a share would take.

Owns the answers that do not depend on what is in use, and remembers them for the lifetime of the pools.
Evaluation stays lazy, in the order of the search. Never: CEL itself, or whether a device is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from extender.api.resource import DeviceAttribute, QuantityText

from .candidates import Candidate, device_place
from .capacity import resolve_consumption
from .constraints import AttributeLookup, published_attribute
from .evaluator import SelectorEvaluator, SelectorFault
from .nodeselector import node_matches
from .outcome import Abort
from .pools import Pools
from .quantities import quantity_of
from .state import Consumption

_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has()"
    " for optional fields"
)


class Selector(NamedTuple):
    """An expression and where it stands, for errors: "class NAME" or "claim NAMESPACE/NAME".

    Without an expression (upstream would crash on a class like that) no device can be judged.
    """

    where: str
    position: int
    expression: str | None


class Matcher:
    """Tells of each candidate whether selectors of class and request, and its node selection, accept it."""

    __slots__ = ("_evaluator", "_pools", "_selectors", "_verdicts")

    def __init__(self, pools: Pools, evaluator: SelectorEvaluator, selectors: Sequence[Selector]) -> None:
        self._pools = pools
        self._evaluator = evaluator
        self._selectors = selectors
        key = ("match", evaluator, *(selector.expression for selector in selectors))
        self._verdicts = remembered(pools, key)

    def matches(self, index: int) -> bool:
        """Tell whether the candidate at this index is acceptable; raise Abort where the scheduler fails."""
        verdict = self._verdicts[index]
        if verdict is None:
            verdict = self._verdicts[index] = self._evaluate(self._pools.candidates[index])
        return verdict is True

    def _evaluate(self, candidate: Candidate) -> bool:
        if candidate.has_binding_conditions and not self._pools.features.device_binding_and_status:
            return False
        for selector in self._selectors:
            if selector.expression is None:
                raise Abort(f"{selector.where}, selector #{selector.position}: CEL expression empty")
            verdict = self._evaluator.matches(selector.expression, candidate.facts)
            if isinstance(verdict, SelectorFault):
                raise Abort(_fault_text(selector, candidate, verdict))
            if not verdict:
                return False
        if candidate.slice.spec.per_device_node_selection:
            return node_matches(self._pools.node, device_place(candidate.device))
        return True


def _fault_text(selector: Selector, candidate: Candidate, fault: SelectorFault) -> str:
    where = f"{selector.where}: selector #{selector.position}"
    if fault.kind == "compile":
        return f"{where}: CEL compile error: {fault.text}"
    hint = _HINT if "no such key:" in fault.text else ""
    return f"{where} on device {candidate.id}: CEL runtime error: {fault.text}{hint}"


class Shares:
    """Tells what one share of each candidate takes for a request's capacities."""

    __slots__ = ("_consumptions", "_fractional", "_pools", "_requested")

    def __init__(self, pools: Pools, requested: Mapping[str, QuantityText]) -> None:
        self._pools = pools
        self._requested = {name: quantity_of(value) for name, value in requested.items()}
        self._fractional = pools.features.fractional_capacity_range
        key = ("shares", *((name, repr(requested[name])) for name in sorted(requested)))
        self._consumptions = remembered(pools, key)

    def consumption(self, index: int) -> Consumption | None:
        """Return what a share takes, None when the device can't serve the request; raise CapacityFault."""
        known = self._consumptions[index]
        if known is None:
            candidate = self._pools.candidates[index]
            resolved = resolve_consumption(self._requested, candidate.capacities, fractional=self._fractional)
            known = self._consumptions[index] = False if resolved is None else resolved
        return None if known is False else cast("Consumption", known)


class Attributes:
    """Finds attributes as a request sees them: derived ones first, each expression once for a device."""

    __slots__ = ("_derived", "_evaluator", "_known")

    def __init__(self, evaluator: SelectorEvaluator, derived: Mapping[str, str]) -> None:
        self._evaluator = evaluator
        self._derived = derived
        self._known: dict[tuple[Candidate, str], DeviceAttribute] = {}

    def lookup(self, candidate: Candidate, name: str) -> DeviceAttribute | None:
        """Return the attribute or None; raise Abort when a derived attribute has no value."""
        expression = self._derived.get(name)
        if expression is None:
            return published_attribute(candidate, name)
        known = self._known.get((candidate, expression))
        if known is None:
            found = self._evaluator.derive(expression, candidate.facts)
            if isinstance(found, SelectorFault):
                where = "" if found.kind == "compile" else f" on device {candidate.id}"
                verb = "compile" if found.kind == "compile" else "evaluate"
                raise Abort(f"{verb} derived attribute {name}{where} failed: {found.text}")
            known = self._known[candidate, expression] = found
        return known


def lookup_for(evaluator: SelectorEvaluator, derived: Mapping[str, str]) -> AttributeLookup:
    """Return the cheapest lookup for a request."""
    return Attributes(evaluator, derived).lookup if derived else published_attribute


def remembered(pools: Pools, key: object) -> list[object]:
    """Return the memo of a kind: one entry for each candidate, None where nothing is known yet."""
    memo = pools.memo.get(key)
    if memo is None:
        memo = pools.memo[key] = [None] * len(pools.candidates)
    return memo
