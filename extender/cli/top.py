"""`berth top`: what every device of the fleet is doing, like nvidia-smi for all nodes, drawn again and again.

Never: a write.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from extender.cli.doors import Doors
from extender.cli.reading import (
    DEFAULT_URL,
    CaFile,
    Json,
    Source,
    TokenFile,
    Url,
    open_desk,
    show,
    whole_fleet,
)
from extender.server import models
from extender.verbs.views import FleetView, TelemetryRow

GIB = 1 << 30
STATE_STYLES = {"fresh": "", "stale": "yellow", "unsupported": "dim", "lost": "bold red", "absent": "dim"}
BUSY = 80
"""Percent of load or memory from which a number stands out."""


def add_top_command(app: typer.Typer, doors: Doors) -> None:
    """Add the command."""

    @app.command()
    def top(
        url: Url = DEFAULT_URL,
        token_file: TokenFile = None,
        ca_file: CaFile = None,
        every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between two looks.")] = 5.0,
        *,
        once: Annotated[bool, typer.Option("--once", help="Show it once and end.")] = False,
        as_json: Json = False,
    ) -> None:
        """Show what every device is doing, whether it is well, and who holds it."""
        with open_desk(doors, Source(url, token_file, ca_file)) as desk:
            if once or as_json:
                view = whole_fleet(desk)
                show(doors, models.Fleet.model_validate(view), top_table(view), as_json=as_json)
            else:
                watch(lambda: whole_fleet(desk), doors.console, every)


def watch(
    look: Callable[[], FleetView],
    console: Console,
    every: float,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Draw the table anew each `every` seconds, until interrupted."""
    with Live(top_table(look()), console=console, auto_refresh=False, screen=True) as live:
        try:
            while True:
                sleep(every)
                live.update(top_table(look()), refresh=True)
        except KeyboardInterrupt:
            return


def top_table(fleet: FleetView) -> Table:
    """A row a device, by node."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold", box=None)
    for column in ("node", "device", "state"):
        table.add_column(column, overflow="fold")
    for column in ("load", "memory GiB", "heat"):
        table.add_column(column, justify="right")
    table.add_column("health", overflow="fold")
    table.add_column("age", justify="right")
    table.add_column("held by", overflow="fold")
    for node in fleet.nodes:
        for row in node.telemetry:
            table.add_row(
                node.name,
                row.device.rsplit("/", 1)[-1],
                Text(row.state, STATE_STYLES[row.state]),
                _load(row),
                _memory(row),
                "" if row.temperature is None else f"{row.temperature} C",
                _health(row),
                "" if row.age is None else f"{row.age:.0f} s",
                Text("\n".join(row.holders)),
            )
    return table


def _load(row: TelemetryRow) -> Text:
    if row.utilisation is None:
        return Text("")
    return Text(f"{row.utilisation} %", "yellow" if row.utilisation >= BUSY else "")


def _memory(row: TelemetryRow) -> Text:
    if row.memory_used is None or not row.memory_total:
        return Text("")
    full = 100 * row.memory_used >= BUSY * row.memory_total
    return Text(f"{row.memory_used / GIB:.1f} / {row.memory_total / GIB:.1f}", "yellow" if full else "")


def _health(row: TelemetryRow) -> Text:
    if row.health:
        return Text(f"{', '.join(row.health)}: {row.text}", "bold red")
    return Text("ok", "green") if row.state == "fresh" else Text("unknown", "dim")
