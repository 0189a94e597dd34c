"""`berth selectors check EXPRESSION|FILE`: what a selector says of each device, and why.

Owns the page that is printed and the exit status. Never: verdicts, or where devices come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from extender.model.device import DeviceFacts
from extender.selectors import CompileError, Environment, Prepared, Program, Verdict, prepare
from extender.selectors import compile as compile_selector
from extender.selectors.secondopinion import SecondOpinion
from extender.selectors.trace import Finding, explain

MATCHED, UNMATCHED, BROKEN = 0, 1, 2
"""Exit statuses: every selector matches some device (or there are no devices); one matches none; one can't
be compiled or read."""

_SHOWN = 20
"""Devices that are named or explained per selector."""
_COUNTED = 2_000
"""Devices that are looked at for what they miss by."""


def check_selectors(
    source: str,
    console: Console,
    devices: Sequence[tuple[str, DeviceFacts]] = (),
    environment: Environment | None = None,
) -> int:
    """Print compile result, cost, matching devices and what kept the others from matching.

    source: an expression, or a file: a text with one expression, or YAML objects whose selectors are taken.
    devices: (name, facts) of what to try it on.
    """
    try:
        expressions = list(_expressions(source))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        console.print(Text(f"{source}: {error}", style="red"), soft_wrap=True)
        return BROKEN
    if not expressions:
        console.print(Text(f"{source}: no selector in it", style="red"), soft_wrap=True)
        return BROKEN
    prepared = [(name, prepare(facts)) for name, facts in devices]
    status = MATCHED
    for expression in expressions:
        status = max(status, _check(expression, console, prepared, environment or Environment()))
    return status


def _expressions(source: str) -> Iterator[str]:
    path = Path(source) if len(source) < 4096 and "\0" not in source and "\n" not in source else None
    try:
        is_file = path is not None and path.is_file()
    except OSError:
        is_file = False
    if path is None or not is_file:
        yield source
        return
    text = path.read_text("utf-8")
    if path.suffix not in {".yaml", ".yml", ".json"}:
        yield text
        return
    for document in yaml.safe_load_all(text):
        yield from _selectors(document)


def _selectors(part: Any) -> Iterator[str]:
    """All `cel.expression` texts within an object."""
    if isinstance(part, dict):
        cel = part.get("cel")
        if isinstance(cel, dict) and isinstance(cel.get("expression"), str):
            yield cel["expression"]
        for value in part.values():
            yield from _selectors(value)
    elif isinstance(part, list):
        for value in part:
            yield from _selectors(value)


def _check(
    expression: str, console: Console, devices: list[tuple[str, Prepared]], environment: Environment
) -> int:
    console.print(Text(expression.strip(), style="bold"), soft_wrap=True)
    program = compile_selector(expression, environment)
    if isinstance(program, CompileError):
        console.print(Text(program.message, style="red"), soft_wrap=True)
        return BROKEN
    console.print(Text(f"compiles; result {program.result}"), soft_wrap=True)
    if not devices:
        return MATCHED
    verdicts = [(name, device, program.evaluate(device)) for name, device in devices]
    costs = [verdict.cost for _, _, verdict in verdicts]
    console.print(Text(f"cost {min(costs)} to {max(costs)} of {environment.cost_limit}"), soft_wrap=True)
    matching = [name for name, _, verdict in verdicts if verdict.value]
    more = f" and {len(matching) - _SHOWN} more" if len(matching) > _SHOWN else ""
    console.print(
        Text(f"matches {len(matching)} of {len(devices)}: {', '.join(matching[:_SHOWN])}{more}"),
        soft_wrap=True,
    )
    _explain(console, program, verdicts)
    _differences(console, expression, verdicts)
    return MATCHED if matching else UNMATCHED


def _explain(console: Console, program: Program, verdicts: list[tuple[str, Prepared, Verdict]]) -> None:
    others = [(name, device) for name, device, verdict in verdicts if not verdict.value]
    if not others:
        return
    fleet = [device for _, device, _ in verdicts]
    plain = [explain(program, device) for _, device in others[:_COUNTED]]
    # What misses by an amount is more telling than what is of another kind.
    order = sorted(range(len(plain)), key=lambda place: not any(f.gap for f in plain[place]))
    table = Table("device", "comparison", "seen", "gap", "would match", "error", title="not matching")
    for name, device in (others[place] for place in order[:_SHOWN]):
        findings = explain(program, device, fleet)
        for finding in findings:
            table.add_row(*(Text(cell) for cell in _cells(name, finding)))
        if not findings:
            table.add_row(Text(name), "", "", "", "", Text(program.evaluate(device).error or ""))
    console.print(table)
    if len(others) > _SHOWN:
        console.print(Text(f"{len(others) - _SHOWN} more do not match"))
    for comparison, count in _alone(plain).most_common(_SHOWN):
        console.print(Text(f"{count} miss by this alone: {comparison}"), soft_wrap=True)


def _alone(explained: list[tuple[Finding, ...]]) -> Counter[str]:
    """How many devices fail in one comparison only, by comparison."""
    return Counter(findings[0].comparison for findings in explained if len(findings) == 1)


def _cells(name: str, finding: Finding) -> tuple[str, ...]:
    seen = ", ".join(f"{part} = {value}" for part, value in finding.seen)
    error = finding.error or ""
    if finding.hint is not None:
        error = f"{error}; {finding.hint}"
    return name, finding.comparison, seen, finding.gap or "", finding.nearest or "", error


def _differences(console: Console, expression: str, verdicts: list[tuple[str, Prepared, Verdict]]) -> None:
    opinion = SecondOpinion()
    for name, device, verdict in verdicts[:_SHOWN]:
        answer = opinion.verdict(expression, device)
        if answer.value is not verdict.value:
            said = answer.error if answer.value is None else str(answer.value).lower()
            console.print(Text(f"cel-python differs on {name}: {said}", style="yellow"), soft_wrap=True)
