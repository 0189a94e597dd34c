"""The policy file is followed, and a fault in it never reaches the desk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import structlog
import yaml

from extender.model.errors import SettingsError
from extender.settings import load
from extender.verbs.desk import Desk
from extender.wiring.core import build_core
from extender.wiring.policyfile import PolicyFile, load_policy


def write(path: Path, **judges: float) -> None:
    document = {
        "apiVersion": "berth.scheduler/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "test"},
        "judges": judges,
    }
    path.write_text(yaml.safe_dump(document))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    write(path, pack=3)
    return path


@pytest.fixture
def desk(path: Path) -> Desk:
    return build_core(load(None, {"BERTH_POLICY__FILE": str(path)}), "1").desk


def test_a_file_that_is_as_it_was_leaves_the_policy_object_alone(path: Path, desk: Desk) -> None:
    before = desk.policy
    watched = PolicyFile(path, desk, 1)
    assert not watched.look()
    path.write_text(path.read_text() + "# a word\n")
    assert not watched.look()
    assert desk.policy is before


def test_a_new_file_is_taken_whole(path: Path, desk: Desk) -> None:
    watched = PolicyFile(path, desk, 1)
    write(path, spread=1, pool=2)
    assert watched.look()
    assert desk.policy.judges == {"spread": 1, "pool": 2}


def test_a_link_that_points_elsewhere_is_a_new_file(path: Path, desk: Desk, tmp_path: Path) -> None:
    link, other = tmp_path / "link.yaml", tmp_path / "other.yaml"
    write(other, pool=7)
    link.symlink_to(path)
    watched = PolicyFile(link, desk, 1)
    assert not watched.look()
    link.unlink()
    link.symlink_to(other)
    assert watched.look()
    assert desk.policy.judges == {"pool": 7}


@pytest.mark.parametrize("content", [b"[1", b"\xff", b"[]", b"judges: {}", b"a: 2026-99-99", b"&a [*a]"])
def test_a_file_that_can_not_be_used_is_said_once_and_changes_nothing(
    path: Path, desk: Desk, content: bytes
) -> None:
    before = desk.policy
    watched = PolicyFile(path, desk, 1)
    path.write_bytes(content)
    with structlog.testing.capture_logs() as logs:
        assert not watched.look()
        assert not watched.look()
    [line] = logs
    assert str(path) in line["fault"]
    assert desk.policy is before


def test_a_file_that_comes_and_goes_is_said_each_time_it_goes(path: Path, desk: Desk) -> None:
    watched = PolicyFile(path, desk, 1)
    content = path.read_bytes()
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            path.unlink()
            watched.look()
            watched.look()
            path.write_bytes(content)
            watched.look()
    assert len(logs) == 2


async def test_it_is_looked_at_as_often_as_asked(path: Path, desk: Desk) -> None:
    waits: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        write(path, pack=float(len(waits)))
        if len(waits) == 3:
            enough.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(PolicyFile(path, desk, 7.5, sleep).run())
    await asyncio.wait_for(enough.wait(), 10)
    task.cancel()
    assert waits == [7.5, 7.5, 7.5]
    assert desk.policy.judges == {"pack": 2}


def test_a_policy_that_can_not_be_used_at_start_is_an_error_that_names_it(path: Path, desk: Desk) -> None:
    write(path, pack=3, luck=1)
    with pytest.raises(SettingsError, match=f"{path}: judges.luck: no such judge, known are pack"):
        load_policy(path, desk.bench)
