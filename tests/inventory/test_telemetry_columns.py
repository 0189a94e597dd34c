"""Growing and reusing rows."""

from __future__ import annotations

import numpy as np
import pytest

from extender.api.telemetry import READINGS
from extender.inventory.telemetry_columns import Cell, Columns, Freshness


def write(columns: Columns, row: int, value: float, at: float) -> None:
    shape = (1, len(READINGS))
    cells = np.full(shape, Cell.VALUE, dtype=np.uint8)
    columns.write(np.array([row], dtype=np.int32), np.full(shape, value), cells, at, 0)


def test_growing_keeps_what_was_written() -> None:
    columns = Columns(60, 45, 300)
    rows = [columns.take() for _ in range(65)]
    for row in rows[:64]:
        write(columns, row, float(row), 1.0)
    more = [columns.take() for _ in range(200)]
    assert len(columns) == 265
    values, states = columns.column("temperature", np.array(rows + more, dtype=np.int32), 2.0)
    assert values[:64].tolist() == [float(r) for r in rows[:64]]
    assert set(states[:64].tolist()) == {Freshness.FRESH}
    assert set(states[64:].tolist()) == {Freshness.ABSENT}


def test_a_row_taken_again_remembers_nothing() -> None:
    columns = Columns(60, 45, 300)
    row = columns.take()
    write(columns, row, 80.0, 1.0)
    columns.free(row)
    assert columns.take() == row
    at = np.array([row], dtype=np.int32)
    assert columns.column("temperature", at, 1.0)[1][0] == Freshness.ABSENT
    write(columns, row, 10.0, 2.0)
    assert columns.smoothed("temperature", at, 2.0)[0][0] == 10.0


def test_row_minus_one_is_absent() -> None:
    columns = Columns(60, 45, 300)
    write(columns, columns.take(), 80.0, 1.0)
    values, states = columns.column("power", np.array([-1], dtype=np.int32), 1.0)
    assert (values[0], states[0]) == (0.0, Freshness.ABSENT)


def test_a_reading_that_is_not_smoothed_is_refused() -> None:
    with pytest.raises(ValueError, match="mig_mode"):
        Columns(60, 45, 300).smoothed("mig_mode", np.zeros(0, dtype=np.int32), 0.0)
