from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from extender.cli.conformance_allocator import conformance_allocator

_CASES = Path(__file__).parent.parent / "allocator" / "data" / "allocator-extra.json"


def _run(path: Path, json_out: Path | None = None) -> tuple[int, str]:
    out = io.StringIO()
    status = conformance_allocator(path, Console(file=out, width=200, no_color=True), json_out)
    return status, out.getvalue()


def _two_cases(tmp_path: Path, **changes: Any) -> Path:
    cases = json.loads(_CASES.read_text())[:2]
    cases[0]["expected"] |= changes
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases))
    return path


def test_all_cases_pass_and_the_last_line_counts_them() -> None:
    status, out = _run(_CASES)
    assert (status, out.splitlines()[-1]) == (0, "40 passed, 0 failed")


def test_a_failing_case_is_printed_and_makes_the_status_1(tmp_path: Path) -> None:
    path = _two_cases(tmp_path, outcome="gave-up")
    name = json.loads(path.read_text())[0]["name"]
    status, out = _run(path)
    assert status == 1
    assert f"FAILED {name}: outcome" in out
    assert out.splitlines()[-1] == "1 passed, 1 failed"


def test_what_was_computed_is_written_for_others_to_compare(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    status, _ = _run(_two_cases(tmp_path), target)
    records = json.loads(target.read_text())
    assert (status, len(records)) == (0, 2)
    assert set(records[0]) >= {"name", "ok", "why", "outcome", "scope", "error", "results"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    status, out = _run(tmp_path / "missing.json")
    assert status == 2
    assert "missing.json" in out.replace("\n", "")
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    status, out = _run(broken)
    assert status == 2
    assert "Expected `array`" in out
