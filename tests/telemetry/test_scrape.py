"""Scrapes of exporters over real HTTP."""

from __future__ import annotations

import asyncio

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from extender.inventory.telemetry_columns import Freshness
from extender.telemetry.scrape import DcgmScraper
from extender.telemetry.settings import DcgmSettings
from tests.telemetry.conftest import KeepingIntake, make_intake, plain_client, serving
from tests.telemetry.expositions import DEFAULT, GPU, exposition, row


class Exporter:
    """A dcgm-exporter that answers what it is told."""

    def __init__(self) -> None:
        self.text = exposition({row(): DEFAULT})
        self.status = 200
        self.delay_s = 0.0

    async def metrics(self, _: Request) -> Response:
        await asyncio.sleep(self.delay_s)
        return PlainTextResponse(self.text, self.status)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/metrics", self.metrics)])


def temperature(intake: KeepingIntake, now: float) -> tuple[float, Freshness]:
    node = intake.store.node("n1")
    row_of = node.rows.get(GPU, -1) if node else -1
    values, states = intake.store.columns.column("temperature", np.array([row_of], dtype=np.int32), now)
    return float(values[0]), Freshness(int(states[0]))


def failures(intake: KeepingIntake, why: str) -> float:
    return float(intake.metrics.failed.labels("dcgm", why)._value.get())


async def test_a_scrape_is_as_old_as_the_exporters_interval() -> None:
    exporter, intake = Exporter(), make_intake()
    async with serving(exporter.app()) as port, plain_client() as client:
        targets = {"n1": f"http://127.0.0.1:{port}/metrics"}
        scraper = DcgmScraper(
            settings=DcgmSettings(collect_s=30),
            client=client,
            intake=intake,
            now=lambda: 100.0,
            targets=lambda: targets,
        )
        await scraper.scrape_all()
    assert temperature(intake, 115.0) == (42.0, Freshness.FRESH)
    assert temperature(intake, 116.0)[1] is Freshness.STALE


async def test_a_failed_scrape_is_counted_and_brings_nothing() -> None:
    exporter, intake = Exporter(), make_intake()
    async with serving(exporter.app()) as port, plain_client() as client:
        targets = {"n1": f"http://127.0.0.1:{port}/metrics", "n2": "http://127.0.0.1:1/metrics"}
        scraper = DcgmScraper(
            settings=DcgmSettings(timeout_s=0.3, most_bytes=20_000),
            client=client,
            intake=intake,
            now=lambda: 100.0,
            targets=lambda: targets,
        )
        exporter.status = 500
        await scraper.scrape_all()
        exporter.status, exporter.text = 200, "DCGM_FI_DEV_GPU_TEMP{ 1\n"
        await scraper.scrape_all()
        exporter.text = "#" * 30_000
        await scraper.scrape_all()
        exporter.text, exporter.delay_s = "", 1.0
        await scraper.scrape_all()
    assert [failures(intake, why) for why in ("500", "malformed", "too long", "timeout")] == [1, 1, 1, 1]
    assert failures(intake, "unreachable") == 4
    assert len(intake.store) == 0


async def test_an_exporter_that_repeats_itself_goes_stale() -> None:
    exporter, intake, now = Exporter(), make_intake(), 0.0
    async with serving(exporter.app()) as port, plain_client() as client:
        targets = {"n1": f"http://127.0.0.1:{port}/metrics"}
        scraper = DcgmScraper(
            settings=DcgmSettings(frozen_after_s=120),
            client=client,
            intake=intake,
            now=lambda: now,
            targets=lambda: targets,
        )
        for _ in range(20):
            await scraper.scrape_all()
            now += 15.0
    assert temperature(intake, now)[1] is Freshness.STALE
    assert failures(intake, "frozen") > 0


async def test_a_target_that_comes_back_is_met_for_the_first_time() -> None:
    exporter, intake = Exporter(), make_intake()
    async with serving(exporter.app()) as port, plain_client() as client:
        targets = {"n1": f"http://127.0.0.1:{port}/metrics"}
        scraper = DcgmScraper(
            settings=DcgmSettings(), client=client, intake=intake, now=lambda: 0.0, targets=lambda: targets
        )

        async def heard(code: int) -> float:
            exporter.text = exposition({row(): DEFAULT | {"DCGM_FI_DEV_XID_ERRORS": code}})
            await scraper.scrape_all()
            return float(intake.metrics.xids.labels(str(code))._value.get())

        assert await heard(0) == 0
        assert await heard(43) == 1
        targets, back = {}, targets
        await scraper.scrape_all()
        targets = back
        assert await heard(45) == 0  # the gauge may have said so for days
