"""Selector engines for the allocator's fuzzing: upstream's own, which leaves only the allocator to differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from extender.allocator.evaluator import SelectorFault
from extender.api.resource import DeviceAttribute

if TYPE_CHECKING:
    from extender.model.device import DeviceFacts
    from tests.oracle.client import Oracle


class OracleEvaluator:
    """Asks the oracle for every verdict, each distinct question once."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._verdicts: dict[bytes, bool | SelectorFault] = {}

    def matches(self, expression: str, facts: DeviceFacts) -> bool | SelectorFault:
        """Tell whether a device matches a selector."""
        question = _question(expression, facts)
        key = msgspec.json.encode(question)
        if key not in self._verdicts:
            [answer] = self._oracle.selectors([question])
            self._verdicts[key] = (
                SelectorFault("compile" if answer.verdict == "compile error" else "runtime", answer.error)
                if answer.verdict.endswith("error")
                else answer.verdict == "true"
            )
        return self._verdicts[key]

    def derive(self, expression: str, facts: DeviceFacts) -> DeviceAttribute | SelectorFault:
        """Compute a derived attribute of a device."""
        answer = self._oracle.derive(_question(expression, facts))
        if answer.fault:
            return SelectorFault(answer.fault, answer.error)
        return msgspec.convert(answer.attribute, DeviceAttribute)


def _question(expression: str, facts: DeviceFacts) -> dict[str, Any]:
    return {
        "expression": expression,
        "device": {
            "driver": facts.driver,
            "attributes": msgspec.to_builtins(dict(facts.attributes)),
            "capacity": {name: str(capacity.value) for name, capacity in facts.capacity.items()},
            "allowMultipleAllocations": facts.allow_multiple_allocations,
        },
        "environment": {"stored": True},
    }
