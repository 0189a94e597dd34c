"""The command line as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.commands import runner


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ended = runner(capsys)("version")
    assert (ended.status, ended.out) == (0, "1.2.3\n")


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    ended = runner(capsys)("surprise")
    assert ended.status == 2
    assert "surprise" in ended.err


def test_a_command_whose_door_is_missing_is_not_offered(capsys: pytest.CaptureFixture[str]) -> None:
    help_text = runner(capsys)("--help").out
    assert "fleet" in help_text
    assert "demo" not in help_text
    assert runner(capsys)("serve").status == 2


def test_the_installed_module_answers() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "extender", "version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip().count(".") >= 2
