"""The documents say what is there: settings, reason codes, metrics, files and targets of make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from extender import settings
from extender.model.reason import Reason
from extender.observability.metrics import Metrics
from extender.telemetry.agent.settings import AGENT_PREFIX, AgentSettings

_ROOT = Path(__file__).resolve().parents[2]
_DOCUMENTS = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")])


def _read(name: str) -> str:
    return (_ROOT / "docs" / name).read_text()


def test_every_setting_is_documented_with_its_variable() -> None:
    text = _read("settings.md")
    every = [
        *settings.describe(settings.Settings, settings.PREFIX),
        *settings.describe(AgentSettings, AGENT_PREFIX),
    ]
    assert [each.key for each in every if f"`{each.key}`" not in text] == []
    assert [each.variable for each in every if f"`{each.variable}`" not in text] == []


def test_every_reason_is_documented() -> None:
    text = _read("reasons.md")
    assert [each.value for each in Reason if f"`{each.value}`" not in text] == []


def test_no_reason_is_documented_that_does_not_exist() -> None:
    rows = re.findall(r"^\| `([A-Z]\w+)` \|", _read("reasons.md"), re.MULTILINE)
    assert set(rows) - {each.value for each in Reason} == set()


def test_every_metric_that_is_counted_is_documented() -> None:
    registry = CollectorRegistry()
    Metrics(registry, "test")
    names = {each.name for each in registry.collect() if each.name.startswith("berth_")}
    text = _read("operations.md")
    assert sorted(name for name in names if f"`{name}" not in text) == []


def test_alerts_name_documented_metrics() -> None:
    rules = (_ROOT / "deploy" / "monitoring" / "alerts.yaml").read_text()
    named = {re.sub(r"_bucket$", "", name) for name in re.findall(r"berth_\w+", rules)}
    assert sorted(name for name in named if f"`{name}`" not in _read("operations.md")) == []


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", document.read_text())
    assert [each for each in targets if not (document.parent / each).exists()] == []


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_targets_of_make_exist(document: Path) -> None:
    made = set(re.findall(r"^([a-z]+):", (_ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z]+)", document.read_text()))
    named |= set(re.findall(r"^\s*make ([a-z]+)", document.read_text(), re.MULTILINE))
    assert named - made == set()


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_named_files_of_the_repository_exist(document: Path) -> None:
    pattern = r"`((?:deploy|docs|extender|tests|policies|loadtest|bench)/[\w./-]*)`"
    named = set(re.findall(pattern, document.read_text()))
    assert sorted(each for each in named if not (_ROOT / each).exists()) == []


def test_the_picture_of_the_rooms_names_each_of_them() -> None:
    text = _read("architecture.md")
    rooms = [path.stem for path in (_ROOT / "extender").iterdir() if not path.name.startswith("__")]
    assert [room for room in rooms if f"\n**`{room}`**" not in text] == []
