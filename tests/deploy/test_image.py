"""The Dockerfile's steps, carried out in a clean folder, give a `berth` that the manifests can start."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.deploy.dockerfile import Image, carry_out, instructions
from tests.deploy.manifests import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_TEXT = (ROOT / "Dockerfile").read_text()


def _python() -> str:
    """The image's version of Python where it is on PATH and runs, else the one that runs the tests."""
    version = re.search(r"^FROM python:(\d+\.\d+)-slim", _TEXT, re.MULTILINE)
    assert version is not None
    found = shutil.which(f"python{version[1]}")
    if found is not None:
        asked = [found, "-c", "import sys; print(sys.executable)"]
        said = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
        if said.returncode == 0:
            return said.stdout.strip()
    return sys.executable


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    python = _python()
    print(f"carrying out the Dockerfile with {python}")
    return carry_out(ROOT / "Dockerfile", ROOT, tmp_path_factory.mktemp("image"), python)


def _start(image: Image, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*image.entrypoint, *arguments],
        cwd=cwd or image.inside("."),
        env=image.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_install_is_by_hash_or_from_what_was_just_built() -> None:
    for word, rest in instructions(_TEXT):
        if word == "RUN" and re.search(r"pip (install|wheel)", rest):
            assert re.search(r"--require-hashes|--no-deps", rest), rest
            assert not re.search(r"index-url|find-links|https?:", rest), rest


def test_the_container_is_not_root_and_starts_berth() -> None:
    words = dict(instructions(_TEXT))
    assert words["USER"] == "65532:65532"
    assert words["ENTRYPOINT"] == '["berth"]'


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_installed_berth_tells_its_version(image: Image, tmp_path: Path) -> None:
    said = _start(image, "version", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "0.1.0" in said.stdout


@pytest.mark.slow
def test_the_installed_berth_plays_its_demo_in_any_folder(image: Image, tmp_path: Path) -> None:
    """The fleet, the policy and the health table come with the package."""
    said = _start(image, "demo", cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "What happened" in said.stdout


@pytest.mark.slow
def test_the_deployments_arguments_are_known(image: Image) -> None:
    said = _start(image, "serve", "--help")
    assert said.returncode == 0, said.stderr
    assert "--config" in said.stdout


@pytest.mark.slow
def test_the_shipped_settings_pass_its_own_check(image: Image) -> None:
    said = _start(image, "config", "check", str(ROOT / "deploy" / "base" / "files" / "berth.yaml"))
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base", "overlays/bind", "overlays/second-scheduler"])
def test_the_shipped_scheduler_files_pass_its_own_linter(image: Image, name: str) -> None:
    path = ROOT / "deploy" / name / "files" / "kube-scheduler.yaml"
    said = _start(image, "scheduler-config", "check", str(path))
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.slow
def test_nothing_that_installs_is_left_in_the_image(image: Image) -> None:
    installed = {path.name.lower() for path in image.root.glob("opt/berth/lib/python*/site-packages/*")}
    assert "extender" in installed
    assert not {name for name in installed if re.match(r"(pip|hatchling|pytest|mypy|ruff)([-_.]|$)", name)}
