"""What the allocator asks of a selector engine.

Owns the protocol and its fault value. Never: CEL itself, which is the business of `extender.selectors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from extender.api.resource import DeviceAttribute
from extender.model.device import DeviceFacts


@dataclass(frozen=True, slots=True)
class SelectorFault:
    """An expression without a verdict: it does not compile, or failed on this device; upstream's text."""

    kind: Literal["compile", "runtime"]
    text: str


class SelectorEvaluator(Protocol):
    """Evaluates expressions; a verdict depends on the expression and the facts alone.

    Called lazily, in the order of the search: an expression that would fail on a device which is never
    reached must not be evaluated there.
    """

    def matches(self, expression: str, facts: DeviceFacts) -> bool | SelectorFault:
        """Tell whether a device matches a selector."""

    def derive(self, expression: str, facts: DeviceFacts) -> DeviceAttribute | SelectorFault:
        """Compute a derived attribute of a device (KEP-6080, alpha)."""
