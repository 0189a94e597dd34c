from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from extender.telemetry.agent.stuck import StuckMark

PID = 4711


def processes(folder: Path, start: int = 100) -> Path:
    """A /proc with one process, whose name tries to look like the end of a name."""
    own = folder / "proc" / str(PID)
    own.mkdir(parents=True, exist_ok=True)
    (own / "stat").write_text(f"{PID} (a) b) D " + " ".join(["0"] * 18) + f" {start} 0 0\n")
    return folder / "proc"


@pytest.fixture
def mark(tmp_path: Path) -> StuckMark:
    made = StuckMark(tmp_path, processes(tmp_path))
    made.set(PID)
    return made


def test_a_marked_reader_is_known_again_after_a_restart_of_the_agent(mark: StuckMark, tmp_path: Path) -> None:
    assert mark.still_there() == PID
    assert StuckMark(tmp_path, tmp_path / "proc").still_there() == PID


def test_another_process_with_its_pid_is_not_taken_for_it(mark: StuckMark, tmp_path: Path) -> None:
    processes(tmp_path, start=200)
    assert mark.still_there() is None
    processes(tmp_path, start=100)
    assert mark.still_there() is None  # the mark went with the process that it was about


def test_a_reader_that_went_is_forgotten(mark: StuckMark, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "proc" / str(PID))
    assert mark.still_there() is None


def test_a_cleared_mark_and_one_that_cant_be_read_are_none(mark: StuckMark, tmp_path: Path) -> None:
    mark.clear()
    assert mark.still_there() is None
    (tmp_path / "stuck-reader.json").write_bytes(b"{")
    assert mark.still_there() is None


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    made = StuckMark(None, processes(tmp_path))
    made.set(PID)
    assert made.still_there() is None
