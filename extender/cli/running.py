"""`berth serve`, `berth demo`, `berth agent`, `berth conformance`: commands that run something.

Options become variables over the environment, so that there is one way to read settings.
Never: the thing itself, which is behind a door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from extender.cli.conformance import conformance_selectors
from extender.cli.conformance_allocator import conformance_allocator
from extender.cli.doors import Devices, Doors
from extender.cli.reading import UsageError
from extender.cli.selectors import check_selectors
from extender.settings import Settings, load

Config = Annotated[Path | None, typer.Option(help="Settings file; without it defaults and the environment.")]


Cases = Annotated[Path, typer.Argument(help="The cases.", show_default=False)]
JsonOut = Annotated[Path | None, typer.Option("--json", help="Write what was computed, case by case.")]


def add_running_commands(app: typer.Typer, doors: Doors) -> None:
    """Add the commands whose doors are there."""
    if doors.serve is not None:
        _add_serve(app, doors, doors.serve)
    if doors.demo is not None:
        _add_demo(app, doors, doors.demo)
    if doors.agent is not None:
        _add_agent(app, doors, doors.agent)
    app.add_typer(_conformance(doors), name="conformance")
    app.add_typer(_selectors(doors), name="selectors")


def _add_serve(app: typer.Typer, doors: Doors, run: Callable[[Settings], None]) -> None:
    @app.command()
    def serve(
        config: Config = None,
        port: Annotated[
            int | None, typer.Option(min=0, max=65535, help="Port, instead of server.port.")
        ] = None,
        nodes: Annotated[
            int, typer.Option(min=0, help="With --embedded: a made-up fleet of so many nodes.")
        ] = 0,
        *,
        embedded: Annotated[
            bool, typer.Option("--embedded", help="Serve the bundled fleet, without a cluster.")
        ] = False,
    ) -> None:
        """Answer kube-scheduler until stopped."""
        given = {} if port is None else {"BERTH_SERVER__PORT": str(port)}
        if not embedded:
            run(load(config, {**doors.environ, **given}))
            return
        if doors.serve_bundled is None:
            raise UsageError("--embedded is not available here")
        # There is no API server that could review a token.
        given["BERTH_API__AUTH"] = "false"
        doors.serve_bundled(load(config, {**doors.environ, **given}), nodes)


def _add_demo(app: typer.Typer, doors: Doors, play: Callable[[Console], int]) -> None:
    @app.command()
    def demo() -> None:
        """Play a workload against the bundled fleet and show what happened."""
        raise typer.Exit(play(doors.console))


def _add_agent(app: typer.Typer, doors: Doors, run: Callable[[Path | None, Mapping[str, str]], None]) -> None:
    @app.command()
    def agent(
        config: Annotated[Path | None, typer.Option(help="The agent's settings file.")] = None,
    ) -> None:
        """Read this node's devices and tell every replica, until stopped."""
        run(config, doors.environ)


def _conformance(doors: Doors) -> typer.Typer:
    app = typer.Typer(help="Conformance cases, run through Berth's own engines.", no_args_is_help=True)

    @app.callback()
    def only() -> None:
        """Keep each kind a command of its own."""

    @app.command()
    def allocator(file: Cases, json_out: JsonOut = None) -> None:
        """Compare the allocator's results with those of a file (allocator.json)."""
        raise typer.Exit(conformance_allocator(file, doors.console, json_out))

    @app.command()
    def selectors(
        file: Cases,
        json_out: JsonOut = None,
        *,
        cost: Annotated[bool, typer.Option("--cost", help="Compare the costs, too.")] = False,
    ) -> None:
        """Compare the verdicts of selectors with those of a file (selectors.yaml)."""
        raise typer.Exit(conformance_selectors(file, doors.console, cost=cost, json_out=json_out))

    return app


def _selectors(doors: Doors) -> typer.Typer:
    app = typer.Typer(help="CEL selectors of devices.", no_args_is_help=True)

    @app.callback()
    def only() -> None:
        """Keep `check` a command of its own."""

    @app.command()
    def check(
        source: Annotated[str, typer.Argument(help="An expression, or a file.", show_default=False)],
        fleet: Annotated[Path | None, typer.Option(help="Kubernetes YAML with devices to try it on.")] = None,
        config: Config = None,
        *,
        cluster: Annotated[bool, typer.Option("--cluster", help="Try it on the cluster's devices.")] = False,
    ) -> None:
        """Say whether a selector compiles, what it costs, which devices match, and why others do not."""
        raise typer.Exit(
            check_selectors(source, doors.console, _devices(doors, fleet, config, cluster=cluster))
        )

    return app


def _devices(doors: Doors, fleet: Path | None, config: Path | None, *, cluster: bool) -> Devices:
    if fleet is not None and cluster:
        raise UsageError("--fleet and --cluster exclude each other")
    if fleet is not None:
        if doors.devices_of_folder is None:
            raise UsageError("--fleet is not available here")
        return doors.devices_of_folder(fleet)
    if cluster:
        if doors.devices_of_cluster is None:
            raise UsageError("--cluster is not available here")
        return doors.devices_of_cluster(load(config, doors.environ))
    return ()
