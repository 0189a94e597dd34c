"""Commands that run something read their settings first, and hand them to the door."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from extender.cli.doors import Devices
from extender.model.device import DeviceFacts
from extender.settings import Settings
from tests.cli.commands import Run, runner


class Serving:
    """Doors that note what they were given."""

    def __init__(self) -> None:
        self.served: list[Settings] = []
        self.bundled: list[tuple[Settings, int]] = []

    def serve(self, settings: Settings) -> None:
        self.served.append(settings)

    def serve_bundled(self, settings: Settings, nodes: int) -> None:
        self.bundled.append((settings, nodes))


@pytest.fixture
def serving() -> Serving:
    return Serving()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], serving: Serving) -> Run:
    environ = {"BERTH_LOGGING__LEVEL": "error", "BERTH_SERVER__PORT": "1111"}
    return runner(capsys, environ, serve=serving.serve, serve_bundled=serving.serve_bundled)


def test_serve_reads_the_file_and_the_environment(run: Run, serving: Serving, tmp_path: Path) -> None:
    path = tmp_path / "berth.yaml"
    path.write_text("decisions: {ringSize: 99}\n")
    assert run("serve", "--config", str(path)).status == 0
    [settings] = serving.served
    assert (settings.decisions.ring_size, settings.logging.level, settings.server.port) == (99, "error", 1111)


def test_the_port_option_wins_over_both(run: Run, serving: Serving) -> None:
    assert run("serve", "--port", "2222").status == 0
    assert serving.served[0].server.port == 2222


def test_the_bundled_fleet_is_served_without_tokens(run: Run, serving: Serving) -> None:
    assert run("serve", "--embedded", "--port", "0", "--nodes", "7").status == 0
    [(settings, nodes)] = serving.bundled
    assert (settings.api.auth, settings.server.port, nodes) == (False, 0, 7)
    assert serving.served == []


def test_bad_settings_are_named_and_nothing_is_served(run: Run, serving: Serving, tmp_path: Path) -> None:
    path = tmp_path / "berth.yaml"
    path.write_text("server: {port: -1}\n")
    ended = run("serve", "--config", str(path), "--port", "80")
    assert ended.status == 0  # the option replaces what is bad
    ended = run("serve", "--port", "70000")
    assert ended.status == 2
    path.write_text("surprise: 1\n")
    ended = run("serve", "--config", str(path))
    assert (ended.status, ended.err) == (2, f"{path}:1: surprise: unknown key\n")
    assert len(serving.served) == 1


def test_the_demo_decides_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    def play(console: Console) -> int:
        console.print("played")
        return 3

    ended = runner(capsys, demo=play)("demo")
    assert (ended.status, ended.out) == (3, "played\n")


def test_the_agent_gets_its_file_and_the_environment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given: list[tuple[Path | None, Mapping[str, str]]] = []
    environ = {"BERTH_AGENT__NODE_NAME": "node-1"}

    def agent(path: Path | None, environ: Mapping[str, str]) -> None:
        given.append((path, environ))

    assert runner(capsys, environ, agent=agent)("agent", "--config", str(tmp_path)).status == 0
    assert given == [(tmp_path, environ)]


def test_a_selector_is_tried_on_the_devices_of_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[Path] = []

    def devices(path: Path) -> Devices:
        asked.append(path)
        return [("gpu.example.com/pool/gpu-0", DeviceFacts("gpu.example.com"))]

    run = runner(capsys, devices_of_folder=devices)
    ended = run("selectors", "check", "device.driver == 'gpu.example.com'", "--fleet", str(tmp_path))
    assert (ended.status, asked) == (0, [tmp_path])
    assert "matches 1 of 1: gpu.example.com/pool/gpu-0" in ended.out


def test_a_selector_that_does_not_compile_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner(capsys)("selectors", "check", "1 +").status == 2


def test_the_devices_come_from_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    ended = runner(capsys)("selectors", "check", "true", "--fleet", "x", "--cluster")
    assert (ended.status, ended.err) == (2, "--fleet and --cluster exclude each other\n")


def test_conformance_ends_with_the_status_of_its_cases(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "cases.json"
    path.write_text("[]")
    ended = runner(capsys)("conformance", "allocator", str(path))
    assert (ended.status, ended.out) == (0, "0 passed, 0 failed\n")
    path.write_text("{")
    assert runner(capsys)("conformance", "allocator", str(path)).status == 2
