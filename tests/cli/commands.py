"""Commands as they are typed, with what they print."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console

from extender.cli.app import run_cli
from extender.cli.doors import Doors


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


Run = Callable[..., Ended]


def runner(capsys: pytest.CaptureFixture[str], environ: Mapping[str, str] | None = None, **doors: Any) -> Run:
    """Runs a command line with these doors."""

    def run(*arguments: str) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        made = Doors(
            version="1.2.3",
            environ=environ or {},
            console=Console(file=out, width=200, color_system=None),
            complaints=Console(file=err, width=200, color_system=None),
            **doors,
        )
        status = run_cli(made, arguments)
        printed = capsys.readouterr()
        return Ended(status, out.getvalue() + printed.out, err.getvalue() + printed.err)

    return run
