"""`berth conformance selectors FILE [--cost] [--json OUT]`: the conformance cases through our engine.

Owns reading the file, what is printed and the exit status. Never: a judgement, which `run_cases` makes.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from rich.console import Console
from rich.text import Text

from extender.cli.conformance_report import conclude, unreadable
from extender.selectors.conformance import CaseError, Record, run_cases


def conformance_selectors(
    path: Path, console: Console, *, cost: bool = False, json_out: Path | None = None
) -> int:
    """Run every case of a file; print those that fail and `N passed, N failed`; answer the exit status.

    With `cost`, costs are compared too. A case with verdicts of other releases counts once and fails if any
    of them does. With `json_out`, write for each case what was computed: id, version, expect, got, cost,
    expect_cost, cost_order, error, ok, why; cases of other releases follow their case.
    """
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_loader())  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return unreadable(console, path, error)
    try:
        records = run_cases(document, with_cost=cost)
    except CaseError as error:
        return unreadable(console, path, error)
    outcome: dict[str, bool] = {}
    for record in records:
        outcome[record.id] = outcome.get(record.id, True) and record.ok
        if not record.ok:
            console.print(_line(record), soft_wrap=True)
    reordered = sum(record.cost_order == "other" for record in records)
    if reordered:
        text = (
            f"{reordered} costs are those of another order of visiting a map, which upstream leaves to chance"
        )
        console.print(Text(text), soft_wrap=True)
    failed = sum(not ok for ok in outcome.values())
    return conclude(console, passed=len(outcome) - failed, failed=failed, records=records, json_out=json_out)


def _line(record: Record) -> Text:
    head = (f"FAILED {record.id} ({record.version})", "bold red")
    return Text.assemble(head, f": {record.why}", f" [{record.error}]" if record.error else "")


def _loader() -> type[yaml.SafeLoader]:
    """The C loader where libyaml is built in: the file is large."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
