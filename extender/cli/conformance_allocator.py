"""`berth conformance allocator FILE [--json OUT]`: the conformance cases through our allocator.

Owns reading the file, what is printed and the exit status. Never: a judgement, which `run_case` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from extender.allocator.columns import SelectorColumns
from extender.allocator.conformance import Record, run_case
from extender.allocator.evaluator import SelectorEvaluator
from extender.allocator.features import Features
from extender.cli.conformance_report import conclude, unreadable
from extender.selectors import Environment

EvaluatorFor = Callable[[Features], SelectorEvaluator]
"""Makes the selector engine of a case, whose features decide what expressions may use."""


def scheduler_engine(features: Features) -> SelectorEvaluator:
    """Make the selector engine that kube-scheduler has: stored expressions of 1.37."""
    return SelectorColumns(
        Environment(
            list_attributes=features.list_type_attributes, consumable_capacity=features.consumable_capacity
        )
    )


def conformance_allocator(
    path: Path,
    console: Console,
    json_out: Path | None = None,
    evaluator_for: EvaluatorFor = scheduler_engine,
) -> int:
    """Run every case of a file; print those that fail and `N passed, N failed`; answer the exit status.

    With `json_out`, write for each case what was computed: name, ok, why, outcome, scope, error, results.
    """
    try:
        cases = msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])
    except (OSError, msgspec.MsgspecError) as error:
        return unreadable(console, path, error)
    records = [_run(case, evaluator_for) for case in cases]
    for record in records:
        if not record.ok:
            console.print(Text.assemble((f"FAILED {record.name}", "bold red"), f": {record.why}"))
    failed = sum(not record.ok for record in records)
    return conclude(console, passed=len(records) - failed, failed=failed, records=records, json_out=json_out)


def _run(case: Mapping[str, Any], evaluator_for: EvaluatorFor) -> Record:
    try:
        features = Features.of(case.get("features") or {})
    except (TypeError, ValueError):
        features = Features()  # run_case names what is wrong with them
    return run_case(case, evaluator_for(features))
