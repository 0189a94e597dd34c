"""Binaries are built once per content of their module, and kustomize is one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.controlplane import build

pytestmark = pytest.mark.controlplane


def test_a_kustomization_builds(tmp_path: Path) -> None:
    base = tmp_path / "base"
    overlay = tmp_path / "overlay"
    base.mkdir()
    overlay.mkdir()
    (base / "account.yaml").write_text("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: berth}\n")
    (base / "kustomization.yaml").write_text("resources: [account.yaml]\n")
    (overlay / "kustomization.yaml").write_text("resources: [../base]\nnamespace: second\n")

    (account,) = yaml.safe_load_all(build.kustomize(overlay))

    assert account["metadata"] == {"name": "berth", "namespace": "second"}


def test_a_faulty_kustomization_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [missing.yaml]\n")

    with pytest.raises(ValueError, match=r"missing\.yaml"):
        build.kustomize(tmp_path)


def test_a_built_binary_is_found_again() -> None:
    first = build.build_controlplane()
    made = first.stat().st_mtime_ns

    assert build.build_controlplane() == first
    assert first.stat().st_mtime_ns == made


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BERTH_CACHE", str(tmp_path))
    assert build.cache_folder() == tmp_path
