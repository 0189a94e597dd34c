"""Selectors: verdict and cost beside the scheduler's CEL evaluator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from extender import selectors
from extender.api.resource import DeviceAttribute, DeviceCapacity
from extender.model.device import DeviceFacts
from extender.selectors.environment import Environment
from tests.oracle.client import Oracle, SelectorVerdict
from tests.oracle.known import known_selector_fault
from tests.oracle.shrink import smaller_json
from tests.oracle.strategies.expressions import SelectorInput, selector, smaller
from tests.oracle.subjects.subject import Difference

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

    from tests.oracle.subjects.subject import KnownBug

_REPEATS = 60
_SCHEDULER = {"stored": True}


class SelectorSubject:
    """`extender.selectors` beside k8s.io/dynamic-resource-allocation cel, as the scheduler uses it."""

    name = "selectors"

    def generate(self, rng: random.Random) -> SelectorInput:
        return selector(rng)

    def theirs(self, oracle: Oracle, inputs: Sequence[SelectorInput]) -> list[SelectorVerdict]:
        return oracle.selectors(made.question() for made in inputs)

    def ours(self, made: SelectorInput) -> SelectorVerdict:
        program = selectors.compile(made.text, _environment(made))
        if isinstance(program, selectors.CompileError):
            # A fault that `compile` turned into an answer is a difference, whatever upstream says.
            kind: Literal["panic", "compile error"] = (
                "panic" if program.message.startswith("internal error") else "compile error"
            )
            return SelectorVerdict(kind, program.message)
        verdict = program.evaluate(facts(made.device))
        if verdict.error is not None:
            return SelectorVerdict("runtime error", str(verdict.error), verdict.cost)
        return SelectorVerdict("true" if verdict.value else "false", "", verdict.cost)

    def compare(self, ours: SelectorVerdict, theirs: SelectorVerdict) -> Difference | None:
        if ours.verdict != theirs.verdict:
            return Difference(
                "verdict", f"{ours.verdict} {ours.error}".strip(), f"{theirs.verdict} {theirs.error}".strip()
            )
        if theirs.verdict != "compile error" and theirs.cost is not None and ours.cost != theirs.cost:
            return Difference("cost", str(ours.cost), str(theirs.cost))
        if ours.error != theirs.error:
            return Difference(f"{ours.verdict} text", repr(ours.error), repr(theirs.error), soft=True)
        return None

    def repeated(self, oracle: Oracle, made: SelectorInput) -> list[SelectorVerdict]:
        return oracle.distinct_selectors(made.question(), _REPEATS)

    def known(self, made: SelectorInput, theirs: SelectorVerdict) -> KnownBug | None:
        del made
        return known_selector_fault(theirs)

    def outcome(self, theirs: SelectorVerdict) -> str:
        return theirs.verdict

    def smaller(self, made: SelectorInput) -> Iterator[SelectorInput]:
        if made.text != str(made.tree):
            yield replace(made, text=str(made.tree))
            for at in range(len(made.text)):
                yield replace(made, text=made.text[:at] + made.text[at + 1 :])
            return
        for tree in smaller(made.tree):
            yield replace(made, tree=tree, text=str(tree))
        for part in ("attributes", "capacity"):
            for less in smaller_json(made.device[part]):
                yield replace(made, device={**made.device, part: less})

    def as_case(self, made: SelectorInput) -> dict[str, Any]:
        case: dict[str, Any] = {"expression": made.text, "device": made.device}
        return case if made.environment == _SCHEDULER else case | {"environment": made.environment}


def _environment(made: SelectorInput) -> Environment:
    named = made.environment
    return Environment(
        stored=named["stored"],
        consumable_capacity=named.get("consumableCapacity", True),
        list_attributes=named.get("listTypeAttributes", False),
    )


def facts(device: Mapping[str, Any]) -> DeviceFacts:
    """A device of the conformance cases as our engine sees it."""
    return DeviceFacts(
        driver=device["driver"],
        attributes={
            name: msgspec.convert(value, DeviceAttribute)
            for name, value in (device.get("attributes") or {}).items()
        },
        capacity={
            name: DeviceCapacity(value=value) for name, value in (device.get("capacity") or {}).items()
        },
        allow_multiple_allocations=bool(device.get("allowMultipleAllocations")),
    )
