"""Scrapes of dcgm-exporter endpoints, node by node, into the intake.

A failed scrape brings nothing: what was known ages. Never: what a metric means (see `dcgm`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import httpx

from extender.inventory.telemetry import Source
from extender.telemetry.dcgm import PREFIX, DcgmReader
from extender.telemetry.exposition import ExpositionError, parse
from extender.telemetry.fetch import FetchError, fetch
from extender.telemetry.intake import Intake
from extender.telemetry.settings import DcgmSettings


class DcgmScraper:
    """`run()` ends by cancellation only. `targets` gives URLs by node, anew for each round."""

    def __init__(
        self,
        *,
        settings: DcgmSettings,
        client: httpx.AsyncClient,
        intake: Intake,
        now: Callable[[], float],
        targets: Callable[[], Mapping[str, str]],
    ) -> None:
        self._settings = settings
        self._client = client
        self._intake = intake
        self._now = now
        self._targets = targets
        self._readers: dict[str, DcgmReader] = {}
        self._room = asyncio.Semaphore(settings.concurrency)

    async def run(self) -> None:
        """Round after round."""
        while True:
            await self.scrape_all()
            await asyncio.sleep(self._settings.interval_s)

    async def scrape_all(self) -> None:
        """One round over all targets."""
        targets = dict(self._targets())
        for gone in self._readers.keys() - targets.keys():
            del self._readers[gone]
        await asyncio.gather(*(self._scrape(node, url) for node, url in targets.items()))

    async def _scrape(self, node: str, url: str) -> None:
        settings = self._settings
        reader = self._readers.setdefault(node, DcgmReader(settings.frozen_after_s))
        async with self._room:
            try:
                answer = await fetch(self._client, url, settings.timeout_s, settings.most_bytes)
                now = self._now()
                devices = reader.read(parse(answer.body.decode(errors="replace"), PREFIX), now)
            except FetchError as fault:
                self._intake.metrics.failed.labels("dcgm", fault.why).inc()
                return
            except ExpositionError:
                self._intake.metrics.failed.labels("dcgm", "malformed").inc()
                return
        if reader.frozen:
            self._intake.metrics.failed.labels("dcgm", "frozen").inc(reader.frozen)
        self._intake.readings(node, devices, Source.DCGM, settings.collect_s, now)
