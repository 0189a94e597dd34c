"""How a run of conformance cases ends: the two numbers, what was computed as JSON, the exit status."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import msgspec
from rich.console import Console
from rich.text import Text

PASSED, FAILED, UNREADABLE = 0, 1, 2
"""Exit statuses."""


class Computed(Protocol):
    """What was computed for one case."""

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name, as they are written."""


def unreadable(console: Console, path: Path, error: Exception) -> int:
    """Say what is wrong with a file; the exit status."""
    console.print(Text(f"{path}: {error}", style="red"))
    return UNREADABLE


def conclude(
    console: Console, *, passed: int, failed: int, records: Iterable[Computed], json_out: Path | None
) -> int:
    """Print `N passed, N failed` and write `records` to `json_out`; the exit status."""
    console.print(Text(f"{passed} passed, {failed} failed"), soft_wrap=True)
    if json_out is not None:
        try:
            json_out.write_bytes(msgspec.json.encode([record.as_dict() for record in records]) + b"\n")
        except OSError as error:
            return unreadable(console, json_out, error)
    return FAILED if failed else PASSED
