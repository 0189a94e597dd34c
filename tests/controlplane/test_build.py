"""A binary is built once for each content of its module, and kustomize is part of the control plane's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.controlplane import build

pytestmark = pytest.mark.controlplane

_MAIN = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("%s") }\n'


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache; Go itself comes from PATH, or from where the control plane's build has put it."""
    go = build.installed(build.find_go(), build.cache_folder())
    monkeypatch.setenv("PATH", str(go.parent), prepend=os.pathsep)
    folder = tmp_path / "cache"
    monkeypatch.setenv("BERTH_CACHE", str(folder))
    return folder


@pytest.fixture
def small(tmp_path: Path) -> build.Program:
    """A program of one line, built in a second."""
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module small\n\ngo 1.26\n")
    (folder / "main.go").write_text(_MAIN % "first")
    return build.Program("small", folder, ".", ())


def _said(binary: Path) -> str:
    return subprocess.run([binary], capture_output=True, text=True, timeout=10, check=True).stdout.strip()


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


def test_a_built_binary_is_found_again(cache: Path, small: build.Program) -> None:
    first = build.build(small)
    made = first.stat().st_mtime_ns

    assert build.build(small) == first
    assert first.stat().st_mtime_ns == made
    assert first.parent == cache


def test_a_changed_source_makes_another_binary(cache: Path, small: build.Program) -> None:
    first = build.build(small)
    (small.folder / "main.go").write_text(_MAIN % "second")

    second = build.build(small)

    assert [_said(first), _said(second)] == ["first", "second"]
    assert second.parent == cache


def test_two_builders_at_once_build_once(cache: Path, small: build.Program) -> None:
    program = (
        "import pathlib, sys\n"
        "from tests.controlplane import build\n"
        "print(build.build(build.Program('small', pathlib.Path(sys.argv[1]), '.', ())))\n"
    )
    command = [sys.executable, "-c", program, str(small.folder)]
    root = Path(__file__).resolve().parents[2]
    builders = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root)
        for _ in range(2)
    ]
    said = [builder.communicate(timeout=120)[0] for builder in builders]

    assert [builder.returncode for builder in builders] == [0, 0], said
    assert sum("building small" in text and "MiB" in text for text in said) == 1
    assert {text.splitlines()[-1] for text in said} == {str(build.build(small))}
    assert sorted(each.suffix for each in cache.iterdir()) == ["", ".lock"]


def test_a_source_that_does_not_compile_is_a_build_error(cache: Path, small: build.Program) -> None:
    (small.folder / "main.go").write_text("package main\n\nfunc main() { missing() }\n")

    with pytest.raises(build.BuildError, match="undefined: missing"):
        build.build(small)
    assert [each.name for each in cache.iterdir()] == ["small.lock"]


def test_without_go_on_the_path_the_wheel_stands_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    go = build.find_go()

    assert go.program is None
    assert go.version.startswith("go1.26.")
