"""The metrics of a whole replica: docs/operations.md has every one of them, and alerts ask for no other."""

from __future__ import annotations

import re

import pytest_asyncio
import yaml
from kubernetes.aio.client import Configuration
from prometheus_client.metrics_core import Metric

from extender.kube.client import ApiClient
from extender.observability.readings import InventoryCollector, ReflectorCollector
from extender.settings import load
from extender.wiring.core import build_core
from extender.wiring.gauges import LedgerGauges
from extender.wiring.source import connect
from tests.wiring.process import ROOT


@pytest_asyncio.fixture
async def families() -> list[Metric]:
    """What a replica that does everything would show."""
    core = build_core(load(None, {"BERTH_QUARANTINE__ENABLED": "true"}), "1")
    async with ApiClient(Configuration(host="http://127.0.0.1:1")) as client:
        connect(core, client, {})
        core.registry.register(ReflectorCollector(dict, lambda: 0.0))
        core.registry.register(InventoryCollector(LedgerGauges(core.ledger, dict, lambda: 0.0).read))
        return [family for family in core.registry.collect() if family.name.startswith("berth_")]


def exposed(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


async def test_the_page_names_every_metric_and_no_other(families: list[Metric]) -> None:
    page = (ROOT / "docs" / "operations.md").read_text().split("## Metrics")[1].split("## ")[0]
    named = set(re.findall(r"`(berth_[a-z_]+)`", page))
    assert named == {exposed(family) for family in families if not family.name.endswith("_created")}


async def test_what_only_grows_is_a_counter(families: list[Metric]) -> None:
    kinds = {family.name: family.type for family in families}
    assert {name: kinds[name] for name in ("berth_nudges", "berth_quarantine_faults")} == {
        "berth_nudges": "counter",
        "berth_quarantine_faults": "counter",
    }


async def test_alerts_are_about_metrics_that_there_are(families: list[Metric]) -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "monitoring" / "alerts.yaml").read_text())
    groups = rules.get("spec", rules)["groups"]
    asked = {
        name
        for group in groups
        for rule in group["rules"]
        for name in re.findall(r"berth_[a-z_]+", rule["expr"])
    }
    known = {exposed(family) for family in families}
    buckets = {f"{family.name}_bucket" for family in families if family.type == "histogram"}
    assert asked
    assert asked <= known | buckets
