"""Telemetry in a replica: where samples end, the route and the other sources that bring them, the ticking.

Every replica takes samples, also a follower: it knows the fleet's health when it takes over.
Never: what a reading means.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import httpx
import structlog
from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute

from extender.allocator.blocked import blocked_devices
from extender.inventory.health import HealthBook, Transition
from extender.inventory.health_table import HealthTable, parse_health_table
from extender.inventory.ledger import Ledger
from extender.inventory.outlook import Lookout
from extender.inventory.telemetry import Ages, TelemetryStore
from extender.model.errors import SettingsError
from extender.settings import Settings
from extender.telemetry.intake import Intake
from extender.telemetry.metrics import TelemetryMetrics
from extender.telemetry.promql import PrometheusSource
from extender.telemetry.receiver import NODE_CLAIM, ReceiverDeps, routes
from extender.telemetry.scrape import DcgmScraper
from extender.telemetry.settings import DcgmSettings, PrometheusSettings
from extender.verbs.ports import TokenAuthenticator
from extender.verbs.views import Identity
from extender.wiring.tasks import Work

TICK_SECONDS = 1.0
BUNDLED = "health.yaml"
EMBEDDED_ACCOUNT = "system:node-agent"

Listener = Callable[[Sequence[Transition]], None]


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Store, health and what the vetoes ask (`lookout`), all of one clock; `listeners` hear transitions."""

    store: TelemetryStore
    health: HealthBook
    lookout: Lookout
    metrics: TelemetryMetrics
    intake: Intake
    clock: Callable[[], float]
    listeners: list[Listener] = field(default_factory=list)


def build_telemetry(settings: Settings, registry: CollectorRegistry, clock: Callable[[], float]) -> Telemetry:
    """Build it. Raises SettingsError for a health table that can't be used."""
    wanted = settings.telemetry
    store = TelemetryStore(
        Ages(
            fresh_s=wanted.stale_after_seconds,
            absent_s=wanted.absent_after_seconds,
            half_life_s=wanted.half_life_seconds,
        )
    )
    health = HealthBook(load_health_table(wanted.health_table))
    metrics = TelemetryMetrics(registry)
    listeners: list[Listener] = [_log_transitions]

    def transitioned(transitions: Sequence[Transition]) -> None:
        for listener in listeners:
            listener(transitions)

    return Telemetry(
        store=store,
        health=health,
        lookout=Lookout(store, health, settings.inventory.other_drivers),
        metrics=metrics,
        intake=Intake(store, health, metrics, transitioned),
        clock=clock,
        listeners=listeners,
    )


def load_health_table(path: Path | None) -> HealthTable:
    """The table of a file, or the one that comes with the package. Raises SettingsError."""
    if path is None:
        return parse_health_table(files("extender.wiring").joinpath(BUNDLED).read_text("utf-8"), BUNDLED)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"telemetry.healthTable: {path}: can't be read: {error}") from error
    return parse_health_table(text, str(path))


def sample_routes(
    telemetry: Telemetry, settings: Settings, authenticator: TokenAuthenticator
) -> list[BaseRoute]:
    """The route that node agents send to; who may is decided by the API server."""
    deps = ReceiverDeps(
        intake=telemetry.intake,
        authenticator=authenticator,
        now=telemetry.clock,
        audience=settings.telemetry.audience,
        accounts=settings.telemetry.accounts,
    )
    return list(routes(deps))


def embedded_routes(telemetry: Telemetry, settings: Settings) -> list[BaseRoute]:
    """The same without an API server: a token is the name of its node, and only this machine can connect."""
    if not settings.server.is_loopback():
        return []
    deps = ReceiverDeps(
        intake=telemetry.intake,
        authenticator=NodeNames(),
        now=telemetry.clock,
        audience=settings.telemetry.audience,
        accounts=(EMBEDDED_ACCOUNT,),
    )
    return list(routes(deps))


class NodeNames:
    """Takes a token for the name of the node (extender.verbs.ports.TokenAuthenticator)."""

    async def authenticate(self, token: str, audience: str) -> Identity | None:
        """The agent of the node that the token names, for any audience."""
        del audience
        return Identity(EMBEDDED_ACCOUNT, extra=MappingProxyType({NODE_CLAIM: (token,)}))


def telemetry_tasks(telemetry: Telemetry, settings: Settings, ledger: Ledger) -> dict[str, Work]:
    """What runs beside the server: the tick, and the sources that are configured."""
    tasks: dict[str, Work] = {"telemetry": lambda: _tick(telemetry, ledger)}
    dcgm, prometheus = settings.telemetry.dcgm, settings.telemetry.prometheus
    if dcgm.targets or dcgm.pattern:
        tasks["dcgm-exporter"] = lambda: _scrape(telemetry, settings, ledger)
    if prometheus.url:
        tasks["prometheus"] = lambda: _query(telemetry, settings)
    return tasks


async def _tick(telemetry: Telemetry, ledger: Ledger) -> None:
    while True:
        now = telemetry.clock()
        telemetry.intake.tick(now)
        telemetry.metrics.refresh(telemetry.store, now)
        snapshot = ledger.snapshot()
        outlook = telemetry.lookout.look(snapshot.topology, now)
        telemetry.metrics.looked(outlook, blocked_devices(outlook, snapshot.occupancy))
        await asyncio.sleep(TICK_SECONDS)


async def _scrape(telemetry: Telemetry, settings: Settings, ledger: Ledger) -> None:
    wanted = settings.telemetry.dcgm
    async with httpx.AsyncClient(trust_env=False) as client:
        scraper = DcgmScraper(
            settings=DcgmSettings(
                interval_s=wanted.interval_seconds,
                collect_s=wanted.collect_seconds,
            ),
            client=client,
            intake=telemetry.intake,
            now=telemetry.clock,
            targets=lambda: exporter_targets(wanted.targets, wanted.pattern, ledger),
        )
        await scraper.run()


def exporter_targets(given: Mapping[str, str], pattern: str, ledger: Ledger) -> dict[str, str]:
    """URL of the exporter by node: as given, else by the pattern for every node with devices."""
    if not pattern:
        return dict(given)
    topology = ledger.snapshot().topology
    nodes = (topology.names[slot] for slot in topology.accelerator.nonzero()[0].tolist())
    return {**{node: pattern.replace("{node}", node) for node in nodes if node}, **given}


async def _query(telemetry: Telemetry, settings: Settings) -> None:
    wanted = settings.telemetry.prometheus
    verify = str(wanted.ca_file) if wanted.ca_file is not None else True
    async with httpx.AsyncClient(trust_env=False, verify=verify) as client:
        source = PrometheusSource(
            settings=PrometheusSettings(
                url=wanted.url,
                interval_s=wanted.interval_seconds,
                collect_s=wanted.collect_seconds,
                ca_file=wanted.ca_file,
                token_file=wanted.token_file,
            ),
            client=client,
            intake=telemetry.intake,
            now=telemetry.clock,
            wall=time.time,
        )
        await source.run()


def _log_transitions(transitions: Sequence[Transition]) -> None:
    log = structlog.get_logger("extender.telemetry")
    for each in transitions:
        say = log.warning if each.entered else log.info
        say(
            "a reason holds against a device" if each.entered else "a reason no longer holds",
            node=each.node,
            device=each.uuid or "all",
            reason=str(each.reason),
            text=each.text,
        )
