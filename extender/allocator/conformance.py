"""Running conformance cases: a case's objects through the allocator, compared with what is expected.

Owns the format of allocator.json (inputs, normalisation, comparison). Never: files, printing, or a
preference: no case is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from extender.api.core import Node, NodeStatus
from extender.api.meta import ObjectMeta
from extender.api.quantity import Quantity
from extender.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from extender.model.device import DeviceID

from .allocate import allocate
from .evaluator import SelectorEvaluator
from .features import Features
from .outcome import Abort, Allocation, Failure, NoFit, Outcome
from .pools import gather_pools
from .quantities import quantity_of
from .state import AllocatedState, SharedDeviceID, merged

STEPS: Final = 1_000_000
"""Bound of a case's search, far above what any case needs."""
_SHARE: Final = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
_CAUSES: Final = {
    "timeout": "context deadline exceeded",
    "deadline": "context deadline exceeded",
    "cancel": "context canceled",
}


@dataclass(frozen=True, slots=True)
class Found:
    """An outcome in the words of the cases; `results` is JSON-shaped, `steps` counts visits of the search."""

    outcome: str
    scope: str | None = None
    error: str | None = None
    results: list[dict[str, Any]] | None = None
    steps: int = 0

    @classmethod
    def of(cls, outcome: Outcome) -> Found:
        """Translate an outcome."""
        if isinstance(outcome, Allocation):
            results = [msgspec.to_builtins(result) for result in outcome.results]
            return cls("allocated", results=results, steps=outcome.steps)
        if isinstance(outcome, NoFit):
            return cls("no-fit", steps=outcome.steps)
        if isinstance(outcome, Failure):
            return cls("error", outcome.scope, outcome.text, steps=outcome.steps)
        return cls("gave-up", error=str(outcome), steps=outcome.steps)


@dataclass(frozen=True, slots=True)
class Record:
    """What came out of a case, and why that is not what was expected."""

    name: str
    found: Found
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether the case passed."""
        return not self.why

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON members: name, ok, why, outcome, scope, error, results, steps."""
        return {"name": self.name, "ok": self.ok, "why": self.why, **asdict(self.found)}


def run_case(case: Mapping[str, Any], evaluator: SelectorEvaluator) -> Record:
    """Allocate what a case asks for and compare; a case that can't be read is a failure that says why."""
    name = str(case.get("name", "?"))
    try:
        found = Found.of(allocate_case(case, evaluator))
        return Record(name, found, _difference(case["expected"], found))
    except (Abort, KeyError, TypeError, ValueError) as fault:
        return Record(name, Found("unreadable"), f"the case can't be read: {fault!r}")


def allocate_case(case: Mapping[str, Any], evaluator: SelectorEvaluator) -> Outcome:
    """Build a case's objects and allocate its claims."""
    features = Features.of(case["features"])
    node = _node(case["node"])
    slices = msgspec.convert(case["slices"] or [], list[ResourceSlice])
    claims = msgspec.convert(case["claimsInNamespaceOrder"] or [], list[ResourceClaim])
    classes = msgspec.convert(case["classes"] or [], list[DeviceClass])
    cause = _CAUSES.get(case.get("context") or "")
    return allocate(
        node,
        claims,
        {item.metadata.name: item for item in classes},
        gather_pools(node, slices, features),
        _state(case["allocatedState"]),
        features,
        STEPS,
        lambda: cause,
        evaluator=evaluator,
    )


def _node(wire: Mapping[str, Any]) -> Node:
    features = wire.get("declaredFeatures") or (wire.get("status") or {}).get("declaredFeatures")
    return Node(
        metadata=ObjectMeta(name=wire["name"], labels=wire.get("labels")),
        status=NodeStatus(declared_features=features),
    )


def _state(wire: Mapping[str, Any]) -> AllocatedState:
    def device(item: Mapping[str, Any]) -> DeviceID:
        return DeviceID(item["driver"], item["pool"], item["device"])

    capacity: dict[DeviceID, dict[str, Quantity]] = {}
    for item in wire.get("aggregatedCapacity") or ():
        added = {name: quantity_of(value) for name, value in (item.get("consumedCapacity") or {}).items()}
        capacity[device(item)] = merged(capacity.get(device(item), {}), added)
    return AllocatedState.over(
        {device(item) for item in wire.get("allocatedDevices") or ()},
        {
            SharedDeviceID(*device(item), item.get("shareID") or "")
            for item in wire.get("allocatedSharedDeviceIDs") or ()
        },
        capacity,
    )


def _difference(expected: Mapping[str, Any], found: Found) -> str:
    """What differs, the most telling difference first; empty when nothing does."""
    wanted_error = expected.get("error") or ""
    if found.outcome != expected["outcome"]:
        return (
            f"outcome {found.outcome} ({found.error or found.results}), expected {expected['outcome']}"
            f" ({wanted_error or expected.get('results')})"
        )
    if found.scope != expected.get("errorScope"):
        return f"error scope {found.scope}, expected {expected.get('errorScope')}"
    error = found.error or ""
    asserted = expected.get("errorContains")
    if not (all(text in error for text in asserted) if asserted else error == wanted_error):
        return f"error {error!r}, expected {wanted_error!r}, to contain {asserted}"
    ours, theirs = normalised(found.results or []), normalised(expected.get("results") or [])
    if ours != theirs:
        return f"results {ours}, expected {theirs}"
    visits = (expected.get("stats") or {}).get("numAllocateOneInvocations")
    return "" if visits in {None, found.steps} else f"{found.steps} visits of the search, expected {visits}"


def normalised(value: Any, key: str = "") -> Any:
    """Return results in comparable form: quantities by value, one share id for all, no empty members."""
    if isinstance(value, Mapping):
        if key == "consumedCapacity":
            return {name: quantity_of(amount) for name, amount in value.items()}
        pairs = (
            (name, item if name == "parameters" else normalised(item, name)) for name, item in value.items()
        )
        return {name: item for name, item in pairs if item is not None and item not in ([], {})}
    if isinstance(value, list):
        return [normalised(item) for item in value]
    return _SHARE if key == "shareID" and value else value
