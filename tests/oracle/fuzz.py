"""Compares our engines with upstream's on many made-up inputs.

``python -m tests.oracle.fuzz --count 100000 --seed 1 [--only selectors|allocator|quantity] [--save FOLDER]``
prints the mix of outcomes, known upstream faults, and every kind of difference with a small input that shows
it; it ends with ``N passed, N failed`` and with status 1 when anything failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extender.allocator.columns import SelectorColumns
from extender.selectors import Environment
from tests.oracle.build import build_oracle
from tests.oracle.campaign import Campaign, Finding, Tally
from tests.oracle.client import Oracle
from tests.oracle.evaluators import OracleEvaluator
from tests.oracle.subjects.allocator import AllocatorSubject
from tests.oracle.subjects.quantity import QuantitySubject
from tests.oracle.subjects.selectors import SelectorSubject

if TYPE_CHECKING:
    from tests.oracle.subjects.subject import Subject

NAMES = ("selectors", "allocator", "quantity")
_SHOWN = 400


def subject(name: str, oracle: Oracle, *, upstream_selectors: bool) -> Subject[Any, Any, Any]:
    """The subject of that name; the allocator's selectors are ours, or upstream's by the given oracle."""
    if name == "selectors":
        return SelectorSubject()
    if name == "allocator":
        own = SelectorColumns(Environment())
        return AllocatorSubject(OracleEvaluator(oracle) if upstream_selectors else own)
    return QuantitySubject()


def report(name: str, tally: Tally, seconds: float) -> None:
    """Print what a campaign saw."""
    print(f"{name}: {tally.ran} inputs in {seconds:.1f} s (ours {tally.seconds_ours:.1f} s)")
    for outcome, count in tally.outcomes.most_common():
        print(f"  {count:8d}  {outcome}")
    for bug, count in tally.known.most_common():
        print(f"  {count:8d}  known upstream fault {bug}: {tally.reasons[bug]}")
    if tally.varying:
        print(f"  {tally.varying:8d}  upstream answers differently from run to run (map order)")
    if tally.undecided:
        print(f"  {tally.undecided:8d}  our search gave up")
    for kind, count in tally.soft.most_common():
        print(f"  {count:8d}  {kind} differs (not counted as failed), e.g. {_cut(tally.soft_examples[kind])}")
    for kind, count in tally.kinds.most_common():
        print(f"  {count:8d}  DIFFERENCE in {kind}")
    for finding in tally.findings:
        print(finding)


def _cut(finding: Finding) -> str:
    text = str(finding)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def save(folder: Path, findings: list[Finding]) -> None:
    """Write each finding as a JSON case whose first member says what differs."""
    folder.mkdir(parents=True, exist_ok=True)
    for finding in findings:
        body = json.dumps({"difference": str(finding.difference), **finding.case}, indent=1)
        name = hashlib.sha256(json.dumps(finding.case).encode()).hexdigest()[:10]
        (folder / f"{finding.difference.kind.replace(' ', '-')}-{name}.json").write_text(body + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.fuzz")
    parser.add_argument("--count", type=int, default=10_000, help="inputs of each kind")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="the same seed makes the same inputs"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first input, to repeat one")
    parser.add_argument("--only", choices=NAMES, action="append", help="compare only this; may be repeated")
    parser.add_argument("--save", type=Path, help="folder for the failing inputs, one JSON file each")
    parser.add_argument(
        "--keep", type=int, default=10, help="failing inputs of each kind to shrink and print"
    )
    parser.add_argument(
        "--upstream-selectors", action="store_true", help="let the allocator use upstream's selector verdicts"
    )
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    passed = failed = 0
    with ExitStack() as stack:
        binary = build_oracle()
        oracle = stack.enter_context(Oracle(binary))
        second = stack.enter_context(Oracle(binary))
        for name in options.only or NAMES:
            began = time.monotonic()
            asked = subject(name, second, upstream_selectors=options.upstream_selectors)
            campaign = Campaign(asked, oracle, keep=options.keep)
            tally = campaign.run(options.count, options.seed, first=options.first)
            report(name, tally, time.monotonic() - began)
            if options.save:
                save(options.save / name, tally.findings)
            failed += tally.failed
            passed += tally.ran - tally.failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
