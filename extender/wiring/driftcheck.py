"""The drift check: now and then everything is listed anew, kind by kind, and compared with the ledger.

A list and a watch are never of one instant, so what differs is listed a second time; what differs then, too,
is reported. The event loop is given back every few milliseconds.
Never: a repair. A relist repairs, and a person must hear that a watch has lost something.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

import structlog

from extender.api.watch import RawList
from extender.inventory.drift import Drift, compare
from extender.inventory.ledger import Ledger
from extender.kube.client import ApiClient
from extender.kube.kinds import Kind, KubernetesObject
from extender.kube.pace import Breather, Pace
from extender.kube.undecodable import DECODE_ERRORS, undecodable
from extender.model.errors import KubeError
from extender.model.ids import ObjectKey
from extender.observability.metrics import Metrics

SECOND_LOOK_SECONDS = 5.0
"""A watch event is late by less than this, or the watch is."""

_NAMED = 5
_LET_GO = 100

Watched = Callable[[], Mapping[Kind[KubernetesObject], str]]
"""The kinds that are watched now, with the version of each."""


class DriftCheck:
    """Compares one ledger with one API server; `run` until cancelled."""

    def __init__(
        self,
        ledger: Ledger,
        client: ApiClient,
        watched: Watched,
        metrics: Metrics,
        *,
        pace: Pace,
        every: float,
        page_size: int,
    ) -> None:
        """`every`: seconds between two checks."""
        self._ledger = ledger
        self._client = client
        self._watched = watched
        self._metrics = metrics
        self._pace = pace
        self._every = every
        self._page_size = page_size
        self._log = structlog.get_logger("extender.wiring")

    async def run(self) -> None:
        """Check again and again; an API server that does not answer is asked again the next time."""
        while True:
            await self._pace.sleep(self._pace.jittered(self._every, 0.1))
            try:
                await self.check()
            except KubeError as error:
                self._log.warning("drift could not be checked", error=str(error))

    async def check(self) -> Mapping[str, Drift]:
        """Compare every kind once, and report; the drift by kind.

        Raises:
            KubeError: a kind could not be listed.
        """
        found: dict[str, Drift] = {}
        for kind, version in self._watched().items():
            drift = await self._differences(kind, version)
            if drift:
                await self._pace.sleep(SECOND_LOOK_SECONDS)
                drift &= await self._differences(kind, version)
            found[kind.name] = drift
            self._report(kind.name, drift)
        self._metrics.drift_checked.set(self._pace.wall().timestamp())
        return found

    async def _differences(self, kind: Kind[KubernetesObject], version: str) -> Drift:
        breather = Breather(self._pace.clock)
        listed, unread = await self._listed(kind, version, breather)
        steps = compare(self._ledger, {kind.name: listed})
        drift: Drift | None = None
        breather.start()
        while drift is None:
            try:
                next(steps)
            except StopIteration as end:
                drift = end.value[kind.name]
            if breather.spent():
                await breather.breathe()
        while listed:
            # To let go of ten thousand objects at once would hold the loop for longer than any step did.
            del listed[-_LET_GO:]
            if breather.spent():
                await breather.breathe()
        # What can't be read is in the ledger as far as it could be salvaged, or not at all.
        return replace(drift, extra=drift.extra - unread, different=drift.different - unread)

    async def _listed(
        self, kind: Kind[KubernetesObject], version: str, breather: Breather
    ) -> tuple[list[Any], frozenset[ObjectKey]]:
        """The objects of now, and the keys of those that can't be read."""
        query = {"fieldSelector": kind.field_selector} if kind.field_selector else {}
        decode = kind.decoder().decode
        listed: list[Any] = []
        unread: set[ObjectKey] = set()
        pages: AsyncGenerator[RawList, None]
        async with aclosing(self._client.pages(kind.path(version), query, limit=self._page_size)) as pages:
            async for page in pages:
                breather.start()
                for raw in page.items or ():
                    try:
                        listed.append(decode(raw))
                    except DECODE_ERRORS as error:
                        broken = undecodable(bytes(raw), error)
                        unread.add(ObjectKey(broken.namespace, broken.name))
                    if breather.spent():
                        await breather.breathe()
        return listed, frozenset(unread)

    def _report(self, kind: str, drift: Drift) -> None:
        differences: dict[Literal["missing", "extra", "different"], frozenset[ObjectKey]] = {
            "missing": drift.missing,
            "extra": drift.extra,
            "different": drift.different,
        }
        for difference, keys in differences.items():
            self._metrics.drifted(kind, difference, len(keys))
            if keys:
                named = [str(key) for key in sorted(keys)[:_NAMED]]
                self._log.error(
                    "the ledger has drifted", kind=kind, difference=difference, objects=len(keys), some=named
                )
