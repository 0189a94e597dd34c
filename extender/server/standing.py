"""Whether this replica may answer: synced in this term, and holding the Lease."""

from __future__ import annotations

from typing import Protocol


class Standing(Protocol):
    """Asked before every verb."""

    def obstacle(self) -> str:
        """Why filter and bind must be answered with an Error now; "" when they may be answered."""


class Switch(Protocol):
    """Whether vetoes count."""

    def enforce(self) -> bool:
        """False in shadow mode, and while the safety switch is off."""

    def shadow(self) -> bool:
        """True in shadow mode: prioritize answers 0 for all."""
