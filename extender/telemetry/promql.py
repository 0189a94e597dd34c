"""One query against an existing Prometheus: the same metrics as `dcgm`, for every node at once.

The query is a range selector, so that each value comes with the time of its scrape; its age is taken against
the `Date` of the answer, both being Prometheus's own clock. Staleness markers end a series there, not here.
Never: a token over plain http to another machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from extender.inventory.telemetry import Source
from extender.model.addresses import is_loopback
from extender.telemetry.dcgm import NODE_LABELS, DcgmReader, first_label
from extender.telemetry.exposition import Series
from extender.telemetry.fetch import Answer, FetchError, fetch
from extender.telemetry.intake import Intake
from extender.telemetry.settings import PrometheusSettings

_PATH: Final = "/api/v1/query"


class _Matrix(msgspec.Struct, frozen=True, gc=False):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    result_type: str = ""
    result: list[_Matrix] = []


class _Reply(msgspec.Struct, frozen=True, gc=False):
    status: str = ""
    data: _Data | None = None


class PrometheusSource:
    """`run()` ends by cancellation only."""

    def __init__(
        self,
        *,
        settings: PrometheusSettings,
        client: httpx.AsyncClient,
        intake: Intake,
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._client = client
        self._intake = intake
        self._now = now
        self._wall = wall
        self._decoder = msgspec.json.Decoder(_Reply)
        self._readers: dict[str, DcgmReader] = {}

    async def run(self) -> None:
        """Query after query."""
        while True:
            await self.query_once()
            await asyncio.sleep(self._settings.interval_s)

    async def query_once(self) -> None:
        """One query; a failed one brings nothing and is counted."""
        try:
            answer = await self._ask()
            reply = self._decoder.decode(answer.body)
        except FetchError as fault:
            self._intake.metrics.failed.labels("prometheus", fault.why).inc()
            return
        except msgspec.DecodeError:
            self._intake.metrics.failed.labels("prometheus", "malformed").inc()
            return
        if reply.status != "success" or reply.data is None or reply.data.result_type != "matrix":
            self._intake.metrics.failed.labels("prometheus", "no matrix").inc()
            return
        self._take(reply.data.result, self._server_time(answer), self._now())

    async def _ask(self) -> Answer:
        settings = self._settings
        headers: dict[str, str] = {}
        url = urlsplit(settings.url)
        if settings.token_file is not None:
            if url.scheme != "https" and not is_loopback(url.hostname or ""):
                raise FetchError("token over plain http")
            try:
                headers["authorization"] = f"Bearer {settings.token_file.read_text().strip()}"
            except OSError as fault:
                raise FetchError("no token") from fault
        return await fetch(
            self._client,
            settings.url.rstrip("/") + _PATH,
            settings.timeout_s,
            settings.most_bytes,
            params={"query": settings.query},
            headers=headers,
        )

    def _server_time(self, answer: Answer) -> float:
        try:
            return parsedate_to_datetime(answer.headers["date"]).timestamp()
        except (KeyError, ValueError):
            return self._wall()

    def _take(self, result: Iterable[_Matrix], server_time: float, now: float) -> None:
        nodes: dict[str, list[Series]] = {}
        ages: dict[str, float] = {}
        for entry in result:
            labels: dict[str, Any] = entry.metric
            node = first_label(labels, NODE_LABELS)
            name = labels.get("__name__", "")
            if not node or not name or not entry.values:
                continue
            at, text = entry.values[-1]
            try:
                value = float(text)
            except ValueError:
                continue  # no number, so no reading: what is not there is not known
            nodes.setdefault(node, []).append(Series(name, labels, value))
            age = max(0.0, server_time - at)
            ages[node] = max(age, ages.get(node, 0.0))  # the oldest counts for all of a node
        for gone in self._readers.keys() - nodes.keys():
            del self._readers[gone]
        for node, series in nodes.items():
            reader = self._readers.setdefault(node, DcgmReader(self._settings.frozen_after_s))
            devices = reader.read(series, now)
            if reader.frozen:
                self._intake.metrics.failed.labels("prometheus", "frozen").inc(reader.frozen)
            age = ages[node] + self._settings.collect_s
            self._intake.readings(node, devices, Source.PROMETHEUS, age, now)
