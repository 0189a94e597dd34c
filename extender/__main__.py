"""The front door: `berth` and `python -m extender`. Builds what a command needs and hands it in."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from extender.cli.app import run_cli
from extender.cli.demo import print_demo
from extender.cli.doors import Devices, Doors
from extender.observability.logs import configure as configure_logs
from extender.server.serve import run_loop
from extender.settings import Settings, load, load_model
from extender.sim.generated import fleet as generated_fleet
from extender.sim.manifests import Skipped
from extender.telemetry.agent.run import run_agent
from extender.telemetry.agent.settings import AGENT_PREFIX, AgentSettings
from extender.verbs.ports import ReadDesk
from extender.wiring.cluster import cluster_core, cluster_desk
from extender.wiring.demo import bundled_fleet, play_demo
from extender.wiring.folder import folder_core, folder_desk, published_devices
from extender.wiring.service import serve_cluster, serve_embedded

VERSION = version("berth")
WIDTH_OF_A_PIPE = 200


def main() -> None:
    """Run the command line."""
    sys.exit(run_cli(_doors(), sys.argv[1:]))


def _doors() -> Doors:
    return Doors(
        version=VERSION,
        environ=os.environ,
        console=_console(),
        complaints=Console(stderr=True),
        serve=_serve,
        serve_bundled=_serve_bundled,
        demo=_demo,
        desk_of_folder=_folder,
        desk_of_cluster=_cluster,
        devices_of_folder=_folder_devices,
        devices_of_cluster=_cluster_devices,
        agent=_agent,
    )


def _console() -> Console:
    """Standard output; a pipe has no width, and tables folded to 80 columns are hard to search."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_A_PIPE)


def _serve(settings: Settings) -> None:
    _logs(settings)
    if settings.kube.source == "embedded":
        run_loop(serve_embedded(settings, VERSION))
    else:
        run_loop(serve_cluster(settings, os.environ, VERSION))


def _serve_bundled(settings: Settings, nodes: int) -> None:
    _logs(settings)
    run_loop(serve_embedded(settings, VERSION, generated_fleet(nodes) if nodes else bundled_fleet()))


def _agent(path: Path | None, environ: Mapping[str, str]) -> None:
    settings = load_model(AgentSettings, path, environ, AGENT_PREFIX)
    configure_logs("info", "json", sys.stderr)
    run_loop(run_agent(settings))


@contextmanager
def _folder(path: Path) -> Iterator[ReadDesk]:
    desk, skipped = folder_desk(load(None, os.environ), VERSION, path)
    _complain(skipped)
    yield desk


def _folder_devices(path: Path) -> Devices:
    core, skipped = folder_core(load(None, os.environ), VERSION, path)
    _complain(skipped)
    return published_devices(core)


def _complain(skipped: Sequence[Skipped]) -> None:
    complaints = Console(stderr=True, soft_wrap=True)
    for left_out in skipped:
        complaints.print(f"skipped {left_out.where}: {left_out.why}", markup=False, style="yellow")


@contextmanager
def _cluster(settings: Settings) -> Iterator[ReadDesk]:
    configure_logs("error", "console", sys.stderr)
    yield asyncio.run(cluster_desk(settings, VERSION))


def _cluster_devices(settings: Settings) -> Devices:
    configure_logs("error", "console", sys.stderr)
    return published_devices(asyncio.run(cluster_core(settings, VERSION)))


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the demo's table (extender.cli.demo.Played)."""

    shows: str
    pod: str
    node: str
    devices: tuple[str, ...]
    score: int | None
    reasons: dict[str, str]
    explained: dict[str, int]


def _demo(console: Console) -> int:
    """Play a workload against the bundled fleet through the real HTTP endpoints."""
    began = time.perf_counter()
    settings = load(None, {"BERTH_SERVER__PORT": "0", "BERTH_LOGGING__LEVEL": "warning"})
    _logs(settings)
    rows: list[_Row] = []

    async def run() -> None:
        for scene, placed in await play_demo(settings, VERSION):
            rows.append(
                _Row(
                    scene.shows,
                    placed.pod,
                    placed.node,
                    placed.devices,
                    placed.score,
                    dict(placed.reasons),
                    dict(placed.explained),
                )
            )

    run_loop(run())
    print_demo(console, rows)
    console.print(f"{len(rows)} pods in {time.perf_counter() - began:.1f} s, from start to end")
    return 0


def _logs(settings: Settings) -> None:
    configure_logs(settings.logging.level, settings.logging.format, sys.stderr)


if __name__ == "__main__":
    main()
