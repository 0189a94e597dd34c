"""Allocation: outcome, scope, error text and exact results beside the scheduler's structured allocator."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import msgspec

from extender.allocator.conformance import Found, allocate_case
from extender.api.quantity import Quantity
from tests.oracle.client import AllocateAnswer, Case, Oracle
from tests.oracle.known import known_allocator_fault
from tests.oracle.shrink import smaller_json
from tests.oracle.strategies.worlds import world
from tests.oracle.subjects.subject import Difference

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from extender.allocator.evaluator import SelectorEvaluator
    from tests.oracle.subjects.subject import KnownBug

_REPEATS = 40
_TIMEOUT_MS = 5_000
_SHARE = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
_SOFT = (
    ("CEL text", "CEL compile error: "),
    ("CEL text", "CEL runtime error: "),
    ("CEL text", "compile derived attribute "),
    ("CEL text", "evaluate derived attribute "),
    # Upstream prints the whole device as a Go value here.
    ("device text", "failed to perform node selection for device "),
)


class AllocatorSubject:
    """`extender.allocator` beside k8s.io/dynamic-resource-allocation structured."""

    name = "allocator"

    def __init__(self, evaluator: SelectorEvaluator) -> None:
        self._evaluator = evaluator

    def generate(self, rng: random.Random) -> Case:
        return world(rng)

    def theirs(self, oracle: Oracle, inputs: Sequence[Case]) -> list[AllocateAnswer]:
        return oracle.allocations(inputs, timeout_ms=_TIMEOUT_MS)

    def ours(self, made: Case) -> Found:
        return Found.of(allocate_case(made, self._evaluator))

    def compare(self, ours: Found, theirs: AllocateAnswer) -> Difference | None:
        mine = f"{ours.outcome} ({ours.error or ours.results})"
        upstream = f"{theirs.outcome} ({theirs.error or theirs.results})"
        if theirs.error_scope == "interrupted":
            return None  # upstream ran out of time; `outcome` counts it
        if ours.outcome != theirs.outcome:
            return Difference("outcome", mine, upstream)
        if (ours.scope or "") != theirs.error_scope:
            return Difference("scope", f"{ours.scope} {mine}", f"{theirs.error_scope} {upstream}")
        if ours.outcome == "error":
            return _text_difference(ours.error or "", theirs.error or "")
        return _result_difference(ours, theirs)

    @staticmethod
    def undecided(ours: Found) -> bool:
        """Whether our search gave up."""
        return ours.outcome == "gave-up"

    def repeated(self, oracle: Oracle, made: Case) -> list[AllocateAnswer]:
        return oracle.distinct_allocations(made, _REPEATS)

    def known(self, made: Case, theirs: AllocateAnswer) -> KnownBug | None:
        return known_allocator_fault(made, theirs)

    def outcome(self, theirs: AllocateAnswer) -> str:
        if theirs.outcome != "error":
            return theirs.outcome
        return f"error ({theirs.error_scope})"

    def smaller(self, made: Case) -> Iterator[Case]:
        for part in ("slices", "claimsInNamespaceOrder", "classes", "allocatedState", "features", "node"):
            for less in smaller_json(made[part]):
                case = {**made, part: copy.deepcopy(less)}
                if _readable(case):
                    yield case

    def as_case(self, made: Case) -> dict[str, Any]:
        return made


def _result_difference(ours: Found, theirs: AllocateAnswer) -> Difference | None:
    """Results must be equal; the length of the search is compared softly."""
    if normalised(ours.results or []) != normalised(theirs.results):
        return Difference("results", json.dumps(ours.results), json.dumps(theirs.results))
    if ours.steps != theirs.allocate_one:
        return Difference("steps", str(ours.steps), str(theirs.allocate_one), soft=True)
    return None


def _readable(case: Case) -> bool:
    """Whether a shrunk case still has what every case has."""
    try:
        return (
            all(
                (entry.get("metadata") or {}).get("name")
                for part in ("slices", "claimsInNamespaceOrder", "classes")
                for entry in case[part]
            )
            and all(
                entry["spec"]["driver"]
                and entry["spec"]["pool"]["name"]
                and entry["spec"]["pool"]["generation"]
                for entry in case["slices"]
            )
            and all(
                request["name"] and (request.get("exactly") or request.get("firstAvailable"))
                for entry in case["claimsInNamespaceOrder"]
                for request in entry["spec"]["devices"]["requests"]
            )
        )
    except (KeyError, TypeError):
        return False


def _text_difference(ours: str, theirs: str) -> Difference | None:
    """Texts must be equal; what another language says inside them is compared softly."""
    if ours == theirs:
        return None
    for kind, mark in _SOFT:
        before, found, _ = theirs.partition(mark)
        if found and ours.startswith(before + mark):
            return Difference(kind, repr(ours), repr(theirs), soft=True)
    return Difference("error text", repr(ours), repr(theirs))


def normalised(value: Any, key: str = "") -> Any:
    """Results in comparable form: quantities by value, one share id, nothing empty."""
    if isinstance(value, dict):
        if key == "consumedCapacity":
            return {name: Quantity.of(amount) for name, amount in value.items()}
        if key == "parameters":
            return value
        made = {name: normalised(item, name) for name, item in value.items()}
        return {name: item for name, item in made.items() if item is not None and item not in ([], {}, "")}
    if isinstance(value, list):
        return [normalised(item) for item in value]
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    return _SHARE if key == "shareID" and value else value
