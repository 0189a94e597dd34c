"""The clock of a replica: seconds since the epoch that never step.

Ages of samples, quiet times and assumptions are differences of one clock. Wall time can be set back by an
hour, which would freeze every reading for that long; so it is read once, and monotonic time carries it on.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def steady_clock(
    wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
) -> Callable[[], float]:
    """A clock that starts at the wall's time of now."""
    offset = wall() - monotonic()
    return lambda: monotonic() + offset
