"""`make bench`: every figure beside its budget, on the terminal and in build/bench.json."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.result import Result

PARTS = ("selectors", "inventory", "verbs", "telemetry", "socket", "allocator", "coldsync", "throughput")
"""Modules of this folder, each with `run() -> list[Result]`."""


def main() -> int:
    """Run the parts; exit with 1 when a budget is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="run this part (may be repeated)")
    parts = parser.parse_args().only or PARTS
    results: list[Result] = []
    console = Console()
    for part in parts:
        console.print(f"measuring {part} ...")
        results.extend(importlib.import_module(f"bench.{part}").run())
    table = Table(title="Figures and budgets", title_justify="left")
    for column in ("name", "value", "unit", "budget", "ok", "note"):
        table.add_column(column, overflow="fold")
    for one in results:
        budget = "" if one.budget is None else f"{one.budget:g}"
        table.add_row(one.name, f"{one.value:g}", one.unit, budget, "yes" if one.ok else "NO", one.note)
    console.print(table)
    out = Path("build/bench.json")
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps([one.as_dict() for one in results], indent=1) + "\n", "utf-8")
    return 0 if all(one.ok for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
