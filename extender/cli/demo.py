"""How the demo looks in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from rich.console import Console
from rich.table import Table


class Played(Protocol):
    """A pod of the demo and what became of it."""

    @property
    def shows(self) -> str:
        """What the pod is there to show."""

    @property
    def pod(self) -> str:
        """Namespace and name."""

    @property
    def node(self) -> str:
        """Where it is bound, "" for nowhere."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Its devices."""

    @property
    def score(self) -> int | None:
        """The node's score; None when there was no choice."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why not, by node."""


def print_demo(console: Console, played: Iterable[Played]) -> None:
    """Print the table: pod, node, devices, score, or reasons."""
    table = Table(title="What happened", title_justify="left")
    for column in ("pod", "shows", "node", "devices", "score", "reasons"):
        table.add_column(column, overflow="fold")
    for one in played:
        counts = Counter(one.reasons.values())
        reasons = "" if one.node else "; ".join(f"{nodes}x {text}" for text, nodes in counts.most_common())
        table.add_row(
            one.pod,
            one.shows,
            one.node or "-",
            _short(one.devices),
            "only one" if one.score is None and one.node else "-" if one.score is None else str(one.score),
            reasons,
        )
    console.print(table)


def _short(devices: tuple[str, ...]) -> str:
    if len(devices) <= 2:
        return ", ".join(devices) or "-"
    return f"{devices[0]} .. {devices[-1].rsplit('/', 1)[-1]} ({len(devices)})"
