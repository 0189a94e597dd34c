"""`berth`: all commands, put together from the doors that are there.

Never: a traceback for a fault that has a name.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.text import Text

from extender.cli.configuration import config_commands, scheduler_config_commands
from extender.cli.doors import Doors
from extender.cli.reading import add_reading_commands
from extender.cli.running import add_running_commands
from extender.cli.top import add_top_command
from extender.model.errors import BerthError


def build_cli(doors: Doors) -> typer.Typer:
    """The command `berth`."""
    app = typer.Typer(
        name="berth",
        help="A kube-scheduler extender for clusters that run AI workloads.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.command()
    def version() -> None:
        """Print the version."""
        typer.echo(doors.version)

    app.add_typer(config_commands(doors), name="config")
    app.add_typer(scheduler_config_commands(doors), name="scheduler-config")
    add_reading_commands(app, doors)
    add_top_command(app, doors)
    add_running_commands(app, doors)
    return app


def run_cli(doors: Doors, arguments: Sequence[str]) -> int:
    """Run one command and answer its exit status; a fault with a name is a line on standard error, and 2."""
    try:
        build_cli(doors)(args=list(arguments), prog_name="berth")
    except BerthError as error:
        for line in str(error).splitlines():
            doors.complaints.print(Text(line), soft_wrap=True)
        return 2
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
