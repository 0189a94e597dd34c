"""The shipped policy, its copy in deploy/, the judges that there are, and the page about them agree."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from extender.scoring.policy import Policy
from extender.settings import load
from extender.wiring.core import build_core
from tests.wiring.process import ROOT

SHIPPED = ROOT / "policies" / "default.yaml"
PAGE = (ROOT / "docs" / "policies.md").read_text()


def policy() -> Policy:
    return Policy.model_validate(yaml.safe_load(SHIPPED.read_text()))


def judges() -> set[str]:
    """The judges of a replica."""
    return set(build_core(load(None, {}), "1").desk.bench.names)


def test_the_deployed_policy_is_the_shipped_one() -> None:
    copy = ROOT / "deploy" / "base" / "files" / "policies" / "default.yaml"
    assert copy.read_bytes() == SHIPPED.read_bytes()


@pytest.mark.parametrize("name", ["default.yaml", "health.yaml"])
def test_what_comes_with_the_package_is_the_shipped_file(name: str) -> None:
    copy = files("extender.wiring").joinpath(name)
    assert copy.read_bytes() == (SHIPPED.parent / name).read_bytes()


def test_without_a_file_the_policy_is_the_shipped_one_wherever_berth_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert build_core(load(None, {}), "1").desk.policy == policy()


def test_the_page_describes_every_judge_and_no_other() -> None:
    table = PAGE.split("## Judges")[1].split("## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == judges()


def test_the_shipped_policy_uses_judges_that_there_are() -> None:
    shipped = policy()
    named = set(shipped.judges)
    for over in (*shipped.classes.values(), *shipped.namespaces.values()):
        named |= set(over.judges)
    assert named <= judges()


def test_the_policy_on_the_page_is_the_shipped_one() -> None:
    [shown] = re.findall(r"```yaml\n(# How much.*?)```", PAGE, re.DOTALL)
    assert shown == SHIPPED.read_text()


def test_every_field_of_a_policy_is_on_the_page() -> None:
    missing = [name for name in Policy.model_fields if f"`{name}`" not in PAGE]
    assert missing == []
