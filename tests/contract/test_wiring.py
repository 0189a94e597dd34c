"""What lies in different rooms and files and must agree: verbs and routes, policies and judges, exports."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
import yaml

import extender
from extender.observability.metrics import VERBS
from extender.scoring.policy import Policy

_ROOT = Path(__file__).resolve().parents[2]
_POLICIES = sorted((_ROOT / "policies").glob("*.yaml"))
_SCHEDULER_FILES = sorted((_ROOT / "deploy").rglob("kube-scheduler.yaml"))


@pytest.mark.parametrize("path", _SCHEDULER_FILES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_the_scheduler_calls_verbs_that_are_counted(path: Path) -> None:
    (extension,) = yaml.safe_load(path.read_text())["extenders"]
    called = {value for key, value in extension.items() if key.endswith("Verb")}
    assert called <= set(VERBS)
    assert extension["urlPrefix"].endswith("/extender")


def test_every_shipped_policy_fits_the_schema() -> None:
    documents = [yaml.safe_load(path.read_text()) for path in _POLICIES]
    policies = [Policy.model_validate(each) for each in documents if each.get("kind") == "Policy"]
    assert "default" in {policy.metadata.name for policy in policies}


def test_the_health_table_is_the_same_in_the_package_and_in_the_manifests() -> None:
    shipped = (_ROOT / "policies" / "health.yaml").read_bytes()
    assert (_ROOT / "extender" / "wiring" / "health.yaml").read_bytes() == shipped
    assert (_ROOT / "deploy" / "base" / "files" / "policies" / "health.yaml").read_bytes() == shipped


def test_every_exported_name_is_there() -> None:
    missing = []
    for found in pkgutil.walk_packages(extender.__path__, "extender."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        missing += [
            f"{found.name}.{name}" for name in getattr(module, "__all__", ()) if not hasattr(module, name)
        ]
    assert missing == []
