"""Telemetry as a replica without a cluster takes it, through the socket; and what is built for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from extender.api.telemetry import PATH, SCHEMA, Device, Driver, DriverState, Readings, Sample, Xid
from extender.inventory.health import Transition
from extender.inventory.ledger import Ledger
from extender.model.errors import SettingsError
from extender.settings import Settings, load
from extender.wiring.telemetry import (
    Telemetry,
    build_telemetry,
    embedded_routes,
    exporter_targets,
    load_health_table,
)
from tests.inventory.objects import node, slice_of
from tests.telemetry.expositions import OTHER, exposition, row
from tests.wiring.process import serving

NODE = "n1"
DEVICES = "berth_telemetry_devices 2.0"


@pytest.fixture
def settings() -> Settings:
    return load(None, {"BERTH_API__AUTH": "false"})


@pytest.fixture
def telemetry(settings: Settings) -> Telemetry:
    return build_telemetry(settings, CollectorRegistry(), lambda: 100.0)


def sample(*xids: int) -> Sample:
    heard = tuple(Xid(serial, code, 1) for serial, code in enumerate(xids, 1))
    device = Device(uuid="GPU-1", readings=Readings(temperature=40), xids=heard)
    return Sample(SCHEMA, NODE, "boot", "agent", 1, 2, 1, 1, Driver(DriverState.OK), (device,))


def test_the_table_that_comes_with_the_package_is_used_when_none_is_named() -> None:
    assert load_health_table(None).class_of(79)[0] == "restartNode"


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"telemetry\.healthTable: .*none\.yaml"):
        load_health_table(tmp_path / "none.yaml")


def test_listeners_hear_what_a_sample_brings_about(telemetry: Telemetry) -> None:
    heard: list[Transition] = []
    telemetry.listeners.append(heard.extend)
    assert telemetry.intake.sample(sample(79), 100.0) is None
    assert [(each.uuid, str(each.reason), each.entered) for each in heard] == [
        ("GPU-1", "DeviceUnhealthy", True)
    ]


def test_an_embedded_service_takes_samples_from_this_machine_only(telemetry: Telemetry) -> None:
    here = load(None, {"BERTH_API__AUTH": "false"})
    anywhere = load(None, {"BERTH_API__AUTH": "false", "BERTH_SERVER__HOST": "0.0.0.0"})
    assert [route.path for route in embedded_routes(telemetry, here)] == [PATH]  # type: ignore[attr-defined]  # they are Routes
    assert embedded_routes(telemetry, anywhere) == []


def test_a_pattern_names_an_exporter_for_each_node_with_devices_that_has_none() -> None:
    ledger = Ledger([])
    ledger.replaced("Node", [node(name) for name in ("a", "b", "without")], [])
    ledger.replaced("ResourceSlice", [slice_of(f"s-{n}", n, ["gpu-0"], node=n) for n in ("a", "b")], [])
    found = exporter_targets({"a": "http://one/metrics"}, "http://{node}:9400/metrics", ledger)
    assert found == {"a": "http://one/metrics", "b": "http://b:9400/metrics"}
    assert exporter_targets({"a": "b"}, "", ledger) == {"a": "b"}


@pytest.mark.slow
def test_an_embedded_service_takes_a_sample_for_the_node_that_the_token_names(tmp_path: Path) -> None:
    body = msgspec.json.encode(sample())
    with serving(tmp_path, "--embedded") as service, service.http() as http:
        said = [
            http.post(PATH, content=body, headers={"content-type": "application/json", **token}).status_code
            for token in ({}, {"authorization": "Bearer n2"}, {"authorization": f"Bearer {NODE}"})
        ]
        assert said == [401, 403, 204]
        assert 'berth_telemetry_samples_total{source="agent"} 1.0' in http.get("/metrics").text


class Elsewhere(BaseHTTPRequestHandler):
    """A dcgm-exporter at /metrics, and a Prometheus that scraped another at /api/v1/query."""

    def do_GET(self) -> None:
        metrics = {"DCGM_FI_DEV_GPU_TEMP": 42}
        if self.path == "/metrics":
            body = exposition({row(): metrics}).encode()
        else:
            labels = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "UUID": OTHER, "Hostname": "n2"}
            result = [{"metric": labels, "values": [[time.time(), "50"]]}]
            body = msgspec.json.encode(
                {"status": "success", "data": {"resultType": "matrix", "result": result}}
            )
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(5)


@pytest.mark.slow
def test_a_replica_reads_the_other_sources_that_its_settings_name(tmp_path: Path, elsewhere: str) -> None:
    targets = msgspec.json.encode({NODE: f"{elsewhere}/metrics"}).decode()
    sources = {"TELEMETRY__DCGM__TARGETS": targets, "TELEMETRY__PROMETHEUS__URL": elsewhere}
    wanted = [f'berth_telemetry_samples_total{{source="{name}"}} 1.0' for name in ("dcgm", "prometheus")]
    with serving(tmp_path, "--embedded", **sources) as service, service.http() as http:
        end = time.monotonic() + 30
        while not all(line in (text := http.get("/metrics").text) for line in [*wanted, DEVICES]):
            assert time.monotonic() < end, text
            time.sleep(0.05)
