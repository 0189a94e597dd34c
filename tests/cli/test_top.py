"""`berth top` shows what every device is doing, over a real socket."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
from rich.console import Console

from extender.cli.top import watch
from extender.verbs.views import FleetView, NodeRow, TelemetryRow
from tests.cli.commands import runner
from tests.server.conftest import make_app
from tests.server.running import running


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(make_app()) as server:
        yield server.url


def test_every_device_is_a_row(capsys: pytest.CaptureFixture[str], url: str) -> None:
    ended = runner(capsys)("top", "--once", "--url", url)
    assert ended.status == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == "node device state load memory GiB heat health age held by"
    assert (
        "node-0 gpu-0 fresh 97 % 64.0 / 141.0 71 C DeviceUnhealthy: XID 79 (restartNode) 3 s team/pod-a"
        in lines
    )
    assert "node-1 gpu-0 absent unknown" in lines


def test_as_json_it_is_the_fleet(capsys: pytest.CaptureFixture[str], url: str) -> None:
    ended = runner(capsys)("top", "--json", "--url", url)
    devices = [each for node in json.loads(ended.out)["nodes"] for each in node["telemetry"]]
    assert [each["utilisation"] for each in devices] == [97, None]


def test_it_is_drawn_again_until_it_is_interrupted() -> None:
    waits: list[float] = []
    out = io.StringIO()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    def look() -> FleetView:
        row = TelemetryRow("d/p/gpu-0", state="fresh", temperature=60 + len(waits))
        return FleetView(1, 1, (), (NodeRow("node-0", ready=True, telemetry=(row,)),))

    watch(look, Console(file=out, width=120, height=20, force_terminal=True), 2.0, sleep)
    assert waits == [2.0, 2.0, 2.0]
    assert [heat for heat in (60, 61, 62, 63) if f"{heat} C" in out.getvalue()] == [60, 61, 62]
