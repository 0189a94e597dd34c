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

    @property
    def explained(self) -> Mapping[str, int]:
        """What Berth says of nodes that were not found, with how many it says it of."""


def print_demo(console: Console, played: Iterable[Played]) -> None:
    """Print the table: pod, node, devices, score, or reasons."""
    table = Table(title="What happened", title_justify="left")
    for column in ("pod", "shows", "node", "devices", "score", "reasons"):
        table.add_column(column, overflow="fold")
    for one in played:
        reasons = "" if one.node else _reasons(one)
        table.add_row(
            one.pod,
            one.shows,
            one.node or "-",
            _short(one.devices),
            "only one" if one.score is None and one.node else "-" if one.score is None else str(one.score),
            reasons,
        )
    console.print(table)


def _reasons(one: Played) -> str:
    """The small scheduler's reasons, and beside them what Berth says of the same nodes."""
    words = {"scheduler": dict(Counter(one.reasons.values()).most_common()), "berth": one.explained}
    return "; ".join(
        f"{who}: " + ", ".join(f"{nodes}x {text}" for text, nodes in said.items())
        for who, said in words.items()
        if said
    )


def _short(devices: tuple[str, ...]) -> str:
    if len(devices) <= 2:
        return ", ".join(devices) or "-"
    return f"{devices[0]} .. {devices[-1].rsplit('/', 1)[-1]} ({len(devices)})"
