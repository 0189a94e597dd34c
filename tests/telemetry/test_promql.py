"""The query against Prometheus: its answers by hand, and a real Prometheus that scrapes a real endpoint."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from extender.inventory.telemetry_columns import Freshness
from extender.telemetry.promql import PrometheusSource
from extender.telemetry.settings import PrometheusSettings
from tests.controlplane.build import BuildError, build_prometheus
from tests.telemetry.conftest import KeepingIntake, free_port, make_intake, plain_client, serving
from tests.telemetry.expositions import DEFAULT, GPU, exposition, row
from tests.telemetry.test_scrape import Exporter

SERVER_TIME = 1_800_000_000


def temperature(intake: KeepingIntake, node: str, now: float) -> tuple[float, Freshness]:
    known = intake.store.node(node)
    row_of = known.rows.get(GPU, -1) if known else -1
    values, states = intake.store.columns.column("temperature", np.array([row_of], dtype=np.int32), now)
    return float(values[0]), Freshness(int(states[0]))


class Api:
    """The query API with one answer; Prometheus's clock is an hour and more off ours."""

    def __init__(self, result: list[Any], result_type: str = "matrix", status: int = 200) -> None:
        self.body: Any = {"status": "success", "data": {"resultType": result_type, "result": result}}
        self.status = status
        self.headers: list[str] = []

    async def query(self, request: Request) -> Response:
        self.headers.append(request.headers.get("authorization", ""))
        return JSONResponse(self.body, self.status)


def series(metric: str, at: float, value: str, **labels: str) -> dict[str, Any]:
    return {"metric": {"__name__": metric, "UUID": GPU, **labels}, "values": [[at - 15, "1"], [at, value]]}


async def ask(api: Api, settings: dict[str, Any] | None = None) -> KeepingIntake:
    intake = make_intake()
    app = Starlette(routes=[Route("/api/v1/query", api.query)])
    async with (
        serving(app, date_header=False) as port,
        plain_client() as client,
    ):
        source = PrometheusSource(
            settings=PrometheusSettings(url=f"http://127.0.0.1:{port}/", **(settings or {})),
            client=client,
            intake=intake,
            now=lambda: 100.0,
            wall=lambda: float(SERVER_TIME),
        )
        await source.query_once()
    return intake


def failed(intake: KeepingIntake, why: str) -> float:
    return float(intake.metrics.failed.labels("prometheus", why)._value.get())


@pytest.mark.parametrize("label", ["node", "Hostname", "hostname", "exported_hostname"])
async def test_each_node_gets_its_own_series(label: str) -> None:
    api = Api(
        [
            series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME, "42", exported_pod="p", **{label: "n1"}),
            series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME, "77", **{label: "n2"}),
            series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME, "99"),
        ]
    )
    intake = await ask(api, {"collect_s": 1.0})
    assert temperature(intake, "n1", 101.0) == (42.0, Freshness.FRESH)
    assert temperature(intake, "n2", 101.0) == (77.0, Freshness.FRESH)


async def test_the_label_node_counts_before_what_the_exporter_calls_its_host() -> None:
    api = Api([series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME, "42", Hostname="a-pod", node="n1")])
    intake = await ask(api, {"collect_s": 1.0})
    assert temperature(intake, "n1", 101.0) == (42.0, Freshness.FRESH)
    assert intake.store.node("a-pod") is None


async def test_the_age_is_that_of_the_scrape() -> None:
    api = Api([series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME - 80, "42", node="n1")])
    intake = await ask(api, {"collect_s": 1.0})
    assert temperature(intake, "n1", 100.0)[1] is Freshness.STALE


async def test_the_exporters_own_interval_is_added_to_the_age() -> None:
    api = Api([series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME - 10, "42", node="n1")])
    intake = await ask(api, {"collect_s": 30.0})
    assert temperature(intake, "n1", 105.0) == (42.0, Freshness.FRESH)
    assert temperature(intake, "n1", 106.0)[1] is Freshness.STALE


@pytest.mark.parametrize("order", [1, -1])
async def test_the_oldest_value_of_a_node_says_how_old_the_node_is(order: int) -> None:
    both = [
        series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME, "42", node="n1"),
        series("DCGM_FI_DEV_POWER_USAGE", SERVER_TIME - 80, "95", node="n1"),
    ]
    intake = await ask(Api(both[::order]), {"collect_s": 1.0})
    assert temperature(intake, "n1", 100.0)[1] is Freshness.STALE


async def test_a_gpu_that_an_exporter_repeats_is_counted_and_not_read() -> None:
    intake, now = make_intake(), 0.0
    energy = series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", SERVER_TIME, "7", node="n1")
    api = Api([energy, series("DCGM_FI_DEV_GPU_TEMP", SERVER_TIME, "42", node="n1")])
    app = Starlette(routes=[Route("/api/v1/query", api.query)])
    async with serving(app, date_header=False) as port, plain_client() as client:
        source = PrometheusSource(
            settings=PrometheusSettings(url=f"http://127.0.0.1:{port}", frozen_after_s=120.0),
            client=client,
            intake=intake,
            now=lambda: now,
            wall=lambda: float(SERVER_TIME),
        )
        await source.query_once()
        assert failed(intake, "frozen") == 0
        now = 121.0
        await source.query_once()
    assert failed(intake, "frozen") == 1
    assert temperature(intake, "n1", now)[1] is Freshness.STALE


@pytest.mark.parametrize(
    ("api", "why"),
    [
        (Api([], status=503), "503"),
        (Api([], result_type="vector"), "no matrix"),
        (Api([{"metric": 7}]), "malformed"),
    ],
)
async def test_an_answer_that_is_no_use_is_counted(api: Api, why: str) -> None:
    intake = await ask(api)
    assert failed(intake, why) == 1
    assert len(intake.store) == 0


async def test_a_token_goes_to_this_machine_or_over_https_only(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    api = Api([])
    await ask(api, {"token_file": token})
    assert api.headers == ["Bearer secret"]
    intake = make_intake()
    async with plain_client() as client:
        settings = PrometheusSettings(url="http://192.0.2.1:9090", token_file=token)
        source = PrometheusSource(
            settings=settings, client=client, intake=intake, now=lambda: 0.0, wall=lambda: 0.0
        )
        await source.query_once()
    assert failed(intake, "token over plain http") == 1


def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out)


@pytest.fixture
async def prometheus(tmp_path: Path) -> AsyncIterator[tuple[Exporter, str]]:
    """A real Prometheus that scrapes an exporter each second, without honouring its labels."""
    try:
        binary = await asyncio.to_thread(build_prometheus)
    except BuildError as fault:
        print(f"not run: the part against a real Prometheus ({fault})")
        pytest.skip("no Prometheus could be built")
    exporter = Exporter()
    labels = row(pod="ollama-0", namespace="ml", container="ollama")
    exporter.text = exposition({labels: DEFAULT})
    async with serving(exporter.app()) as port:
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "dcgm", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
        }
        file = tmp_path / "prometheus.yml"
        file.write_text(json.dumps(config))  # JSON is YAML
        address = f"127.0.0.1:{free_port()}"
        arguments = [
            f"--config.file={file}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={address}",
        ]
        process = start([str(binary), *arguments], tmp_path / "prometheus.log")
        try:
            yield exporter, f"http://{address}"
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.slow
async def test_a_real_prometheus_brings_readings_and_their_true_age(
    prometheus: tuple[Exporter, str],
) -> None:
    exporter, url = prometheus
    intake = make_intake()
    async with plain_client() as client:
        source = PrometheusSource(
            settings=PrometheusSettings(url=url, collect_s=0.1),
            client=client,
            intake=intake,
            now=time.monotonic,
            wall=time.time,
        )

        async def scraped() -> None:
            while temperature(intake, "n1", time.monotonic())[1] is not Freshness.FRESH:
                await source.query_once()
                await asyncio.sleep(0.2)

        await asyncio.wait_for(scraped(), 60)
        assert temperature(intake, "n1", time.monotonic())[0] == 42.0
        node = intake.store.node("n1")
        assert node is not None
        device = intake.store.device(node.rows[GPU])
        assert device is not None
        assert (device.pci, device.readings.memory_total) == ("0000:40:00.0", 81559 << 20)
        # The exporter fails: Prometheus ends the series, and the reading only grows older here.
        exporter.status = 500
        read_at = intake.store.columns._read_at[node.rows[GPU]].max()
        for _ in range(5):
            await asyncio.sleep(0.5)
            await source.query_once()
        later = intake.store.columns._read_at[node.rows[GPU]].max()
        assert later - read_at < 2.5  # not the 2.5 s and more that have passed since
        assert time.monotonic() - later > 1.0


async def test_the_date_of_the_answer_is_prometheuss_clock() -> None:
    slow = SERVER_TIME - 3600

    async def query(_: Request) -> Response:
        body = Api([series("DCGM_FI_DEV_GPU_TEMP", slow, "42", node="n1")]).body
        return JSONResponse(body, headers={"date": formatdate(slow, usegmt=True)})

    intake = make_intake()
    app = Starlette(routes=[Route("/api/v1/query", query)])
    async with (
        serving(app, date_header=False) as port,
        plain_client() as client,
    ):
        source = PrometheusSource(
            settings=PrometheusSettings(url=f"http://127.0.0.1:{port}", collect_s=1.0),
            client=client,
            intake=intake,
            now=lambda: 100.0,
            wall=lambda: float(SERVER_TIME),
        )
        await source.query_once()
    assert temperature(intake, "n1", 101.0) == (42.0, Freshness.FRESH)
