"""`berth config` and `berth scheduler-config` judge files and answer with their exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.cli.settingsdocs import render
from tests.cli.commands import Run, runner
from tests.cli.test_schedulerconfig import GOOD

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def write(folder: Path, text: str) -> str:
    path = folder / "file.yaml"
    path.write_text(text)
    return str(path)


def test_good_settings_are_good(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "server: {port: 9000}\n")
    ended = run("config", "check", path)
    assert (ended.status, ended.out) == (0, f"{path}: good\n")


def test_each_fault_of_the_settings_is_a_line_with_file_line_and_field(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "server:\n  port: many\n  prot: 1\n")
    ended = run("config", "check", path)
    assert ended.status == 1
    assert [line.rsplit(":", 1)[0] for line in ended.out.splitlines()][1] == f"{path}:3: server.prot"
    assert ended.out.startswith(f"{path}:2: server.port: ")


def test_the_environment_is_checked_with_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = runner(capsys, {"BERTH_SERVER__PORT": "many"})
    ended = run("config", "check", write(tmp_path, ""))
    assert ended.status == 1
    assert ended.out.startswith("variable BERTH_SERVER__PORT: ")


def test_a_missing_settings_file_is_a_fault(run: Run, tmp_path: Path) -> None:
    assert run("config", "check", str(tmp_path / "missing")).status == 1


def test_the_shipped_settings_are_good(run: Run) -> None:
    assert run("config", "check", str(ROOT / "deploy/base/files/berth.yaml")).status == 0


def test_the_shipped_settings_of_the_agent_are_good(run: Run) -> None:
    assert (
        run("config", "check", "--agent", str(ROOT / "deploy/components/agent/files/agent.yaml")).status == 0
    )


def test_each_fault_of_an_agents_settings_is_a_line_too(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "listenPort: 9401\nserver: {port: 1}\n")
    ended = run("config", "check", "--agent", path)
    assert ended.status == 1
    assert ended.out.startswith(f"{path}:2: server: ")


def test_the_page_of_settings_is_up_to_date(run: Run) -> None:
    assert run("config", "docs").out == render()
    assert (ROOT / "docs" / "settings.md").read_text() == render(), (
        "run: berth config docs > docs/settings.md"
    )


def test_a_good_scheduler_configuration_ends_with_0(run: Run, tmp_path: Path) -> None:
    ended = run("scheduler-config", "check", write(tmp_path, GOOD))
    assert (ended.status, ended.out) == (0, "0 errors, 0 warnings, 0 advice\n")


def test_an_error_is_shown_with_its_mend_and_ends_with_1(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("nodeCacheCapable: true", "nodeCacheCapable: false"))
    ended = run("scheduler-config", "check", path)
    assert ended.status == 1
    first, mend, counts = ended.out.splitlines()
    assert first.startswith(f"{path}:18: error: extenders[0].nodeCacheCapable: ")
    assert (mend.strip(), counts) == ("mend: nodeCacheCapable: true", "1 errors, 0 warnings, 0 advice")


def test_a_warning_ends_with_0_unless_strict(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("httpTimeout: 10s", "httpTimeout: 2s"))
    assert run("scheduler-config", "check", path).status == 0
    assert run("scheduler-config", "check", "--strict", path).status == 1


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_scheduler_configuration_that_cannot_be_read_is_an_error(
    run: Run, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "file.yaml"
    if content is not None:
        path.write_bytes(content)
    ended = run("scheduler-config", "check", str(path))
    assert ended.status == 1
    assert "can't be read" in ended.err
