"""`berth config check|docs` and `berth scheduler-config check`: files, judged before they are used.

Exit status 1 when something is wrong. Never: a change of a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from extender.cli.doors import Doors
from extender.cli.schedulerconfig.findings import Finding
from extender.cli.schedulerconfig.lint import lint
from extender.cli.settingsdocs import render
from extender.model.errors import SettingsError
from extender.model.variables import variable
from extender.settings import load, load_model
from extender.telemetry.agent.settings import AGENT_PREFIX, AgentSettings

NODE_NAME = variable(AGENT_PREFIX, ("node_name",))
STYLES = {"error": "bold red", "warning": "yellow", "advice": "cyan"}

File = Annotated[Path, typer.Argument(help="The file.", show_default=False)]


def config_commands(doors: Doors) -> typer.Typer:
    """`berth config`."""
    app = typer.Typer(help="Berth's own settings.", no_args_is_help=True)

    @app.command()
    def check(
        file: File,
        *,
        agent: Annotated[bool, typer.Option("--agent", help="It is a node agent's file.")] = False,
    ) -> None:
        """Name every fault of a settings file, with its line."""
        try:
            if agent:
                # Its Pod is told by a variable where it runs.
                load_model(AgentSettings, file, {NODE_NAME: "any", **doors.environ}, AGENT_PREFIX)
            else:
                load(file, doors.environ)
        except SettingsError as error:
            for line in str(error).splitlines():
                doors.console.print(Text(line), soft_wrap=True)
            raise typer.Exit(1) from error
        doors.console.print(Text(f"{file}: good"), soft_wrap=True)

    @app.command()
    def docs() -> None:
        """Print the page of all settings (docs/settings.md)."""
        typer.echo(render(), nl=False)

    return app


def scheduler_config_commands(doors: Doors) -> typer.Typer:
    """`berth scheduler-config`."""
    app = typer.Typer(help="The configuration of kube-scheduler.", no_args_is_help=True)

    @app.command()
    def check(
        file: File,
        *,
        strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")] = False,
    ) -> None:
        """Find the traps of a KubeSchedulerConfiguration with an extender; errors give exit status 1."""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            doors.complaints.print(Text(f"{file}: can't be read: {error}"), soft_wrap=True)
            raise typer.Exit(1) from error
        findings = lint(text)
        for finding in findings:
            doors.console.print(_shown(file, finding), soft_wrap=True)
        counts = {name: sum(finding.severity == name for finding in findings) for name in STYLES}
        doors.console.print(
            Text(f"{counts['error']} errors, {counts['warning']} warnings, {counts['advice']} advice")
        )
        if counts["error"] or (strict and counts["warning"]):
            raise typer.Exit(1)

    @app.callback()
    def only() -> None:
        """Keep `check` a command of its own."""

    return app


def _shown(file: Path, finding: Finding) -> Text:
    where = f"{file}:{finding.line}: "
    field = f"{finding.path}: " if finding.path else ""
    return Text.assemble(
        where,
        (finding.severity, STYLES[finding.severity]),
        f": {field}{finding.happens}\n",
        ("    mend: ", "dim"),
        finding.mend,
    )
