"""The load test's figures are what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtest.run import Phase, main, percentile, report


def test_a_percentile_is_a_measured_value() -> None:
    values = [float(number) for number in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile(values, 1.0) == 100
    assert percentile([7.0], 0.5) == 7


def test_the_report_counts_errors_by_verb_and_names_them() -> None:
    phase = Phase(500, {"filter": [1.0, 3.0], "prioritize": [2.0]}, ["filter: status 500"], 1.0)
    text = report([phase], 5_000)
    assert "| 500 | filter | 2 | 1.0 | 3.0 | 3.0 | 3.0 | 1 |" in text
    assert "| 500 | prioritize | 1 | 2.0 | 2.0 | 2.0 | 2.0 | 0 |" in text
    assert "- filter: status 500" in text


@pytest.mark.slow
def test_a_short_run_against_a_real_server_has_no_error(tmp_path: Path) -> None:
    output = tmp_path / "load.md"
    arguments = ["--nodes", "60", "--seconds", "4", "--requests", "200", "--output", str(output)]
    assert main(arguments) == 0
    rows = [line for line in output.read_text().splitlines() if line.startswith(("| 500 |", "| 5,000 |"))]
    assert len(rows) == 4
    assert all(row.endswith("| 0 |") for row in rows)
