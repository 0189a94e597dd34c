"""One evaluation's state: the device, variables, and what is left of the cost limit.

Owns counting. Closures of the plan take a frame and return a value; they raise CelError, or CostExceeded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from extender.selectors.device import Prepared
from extender.selectors.errors import CostExceeded

NO_VARIABLES: Final[list[Any]] = []
"""Shared by frames without variables; never written to."""


WORK_LIMIT: Final = 12_000_000
"""Values that one evaluation may visit or make beside what its cost counts (see `work`).

Comparing flat lists reaches the cost limit first: it is priced at a tenth of their length.
"""


class Frame:
    """State of one evaluation. `left` is the cost that may still be used, `work` the work beside it."""

    __slots__ = ("device", "left", "limit", "variables", "work")

    def __init__(self, device: Prepared, limit: int, variables: list[Any]) -> None:
        self.device = device
        self.limit = limit
        self.left = limit
        self.variables = variables
        self.work = WORK_LIMIT


Eval = Callable[[Frame], Any]


def exceeded(frame: Frame, *, units: bool) -> NoReturn:
    """Stop: the last charge passed the limit. Charges made of single units stop right behind it."""
    if units:
        frame.left = -1
    raise CostExceeded(frame.limit - frame.left)


def charge(frame: Frame, cost: int) -> None:
    """Charge one call."""
    frame.left = left = frame.left - cost
    if left < 0:
        exceeded(frame, units=False)


class _Unset:
    __slots__ = ()


UNSET: Final = _Unset()
"""An accumulator that was not read yet: its initial value is made on first use."""
