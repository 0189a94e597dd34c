"""What an allocation attempt can end with: four values, no exceptions.

Owns the outcomes and the scopes of failures. Never: how an outcome is reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from extender.api.resource import AllocationResult, DeviceRequestAllocationResult
from extender.model.device import DeviceID

Scope = Literal["fatal", "node", "interrupted"]
"""fatal: the pod's whole attempt aborts; node: other nodes may do; interrupted: the caller wanted it so."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Every claim found its devices: `results[i]` is what the scheduler would write for claim i.

    `steps` counts visits of the search, as upstream's numAllocateOneInvocations.
    """

    results: tuple[AllocationResult, ...]
    steps: int = 0

    def devices(self) -> tuple[DeviceID, ...]:
        """Return the devices in the order of claims and results; a shared device once for each share."""
        return tuple(
            device_of(result) for results in self.results for result in results.devices.results or ()
        )


@dataclass(frozen=True, slots=True)
class NoFit:
    """The node can't satisfy the claims; no error."""

    steps: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """The scheduler would report an error: its text, and how far it reaches."""

    scope: Scope
    text: str
    steps: int = 0


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The step bound was reached: neither a yes nor a no."""

    steps: int

    def __str__(self) -> str:
        return f"gave up after {self.steps} steps"


Outcome = Allocation | NoFit | Failure | GaveUp


class Abort(Exception):  # noqa: N818 - control flow inside the room, never seen outside
    """Ends a search at once; the door turns it into its outcome."""

    def __init__(self, text: str, scope: Scope = "fatal") -> None:
        super().__init__(text)
        self.text = text
        self.scope: Scope = scope


def device_of(result: DeviceRequestAllocationResult) -> DeviceID:
    """Return the id of an allocated device."""
    return DeviceID(result.driver, result.pool, result.device)
