"""The front door: `berth` and `python -m extender`. Builds what a command needs and hands it in."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from extender.cli.demo import print_demo
from extender.model.errors import BerthError
from extender.observability.logs import configure as configure_logs
from extender.server.serve import run_loop
from extender.settings import Settings, load
from extender.sim.generated import fleet as generated_fleet
from extender.wiring.demo import bundled_fleet, play_demo
from extender.wiring.service import serve_cluster, serve_embedded

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


def main() -> None:
    """Run the command line; faults of the user are one line, not a traceback."""
    try:
        app()
    except BerthError as error:
        Console(stderr=True, soft_wrap=True).print(str(error), markup=False, style="red")
        sys.exit(2)


@app.command()
def version() -> None:
    """Print the version."""
    print(installed_version("berth"))  # noqa: T201 - this is what the command is for


@app.command()
def serve(
    config: Annotated[Path | None, typer.Option(help="Settings file.")] = None,
    embedded: Annotated[bool, typer.Option(help="Serve the bundled fleet, without a cluster.")] = False,
    nodes: Annotated[int, typer.Option(help="With --embedded: a made-up fleet of so many nodes.")] = 0,
    port: Annotated[int | None, typer.Option(help="Port, instead of the configured one.")] = None,
) -> None:
    """Serve until SIGTERM."""
    settings = load(config, os.environ)
    if port is not None:
        server = settings.server.model_copy(update={"port": port})
        settings = settings.model_copy(update={"server": server})
    _logs(settings)
    if embedded:
        loaded = generated_fleet(nodes) if nodes else bundled_fleet()
        run_loop(serve_embedded(settings, installed_version("berth"), loaded))
    elif settings.kube.source == "embedded":
        run_loop(serve_embedded(settings, installed_version("berth")))
    else:
        run_loop(serve_cluster(settings, os.environ, installed_version("berth")))


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the demo's table (extender.cli.demo.Played)."""

    shows: str
    pod: str
    node: str
    devices: tuple[str, ...]
    score: int | None
    reasons: dict[str, str]


@app.command()
def demo() -> None:
    """Play a workload against the bundled fleet through the real HTTP endpoints."""
    began = time.perf_counter()
    settings = load(None, {"BERTH_SERVER__PORT": "0", "BERTH_LOGGING__LEVEL": "warning"})
    _logs(settings)
    rows: list[_Row] = []

    async def run() -> None:
        for scene, placed in await play_demo(settings, installed_version("berth")):
            rows.append(
                _Row(scene.shows, placed.pod, placed.node, placed.devices, placed.score, dict(placed.reasons))
            )

    run_loop(run())
    console = Console()
    print_demo(console, rows)
    console.print(f"{len(rows)} pods in {time.perf_counter() - began:.1f} s, from start to end")


def _logs(settings: Settings) -> None:
    configure_logs(settings.logging.level, settings.logging.format, sys.stderr)


__all__: Sequence[str] = ("app", "main")

if __name__ == "__main__":
    main()
