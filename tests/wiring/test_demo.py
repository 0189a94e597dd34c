"""The demo, played over a listening server: what becomes of every scene."""

from __future__ import annotations

import asyncio
import subprocess

import pytest
import yaml

from extender.settings import load
from extender.sim.demo import Scene, scenes
from extender.sim.scheduler import Placement
from extender.wiring.demo import bundled_fleet, play_demo
from tests.wiring.process import ROOT, command

FLEET = ROOT / "extender" / "sim" / "fleets" / "demo.yaml"


@pytest.fixture(scope="module")
def played() -> dict[str, tuple[Scene, Placement]]:
    settings = load(None, {"BERTH_SERVER__PORT": "0"})
    outcome = asyncio.run(asyncio.wait_for(play_demo(settings, "1.2.3"), 60))
    return {scene.pod.metadata.name: (scene, placement) for scene, placement in outcome}


@pytest.fixture
def placed(played: dict[str, tuple[Scene, Placement]]) -> dict[str, Placement]:
    return {name: placement for name, (_, placement) in played.items()}


def test_every_scene_is_played_in_order(played: dict[str, tuple[Scene, Placement]]) -> None:
    assert list(played) == [scene.pod.metadata.name for scene in scenes()]


def test_a_claim_for_one_device_is_packed_onto_the_smallest_node(placed: dict[str, Placement]) -> None:
    notebook = placed["notebook"]
    assert (notebook.node, notebook.devices, notebook.score) == ("l4-a", ("l4-a/gpu-0",), 10)


def test_eight_devices_of_one_kind_are_the_whole_node(placed: dict[str, Placement]) -> None:
    trainer = placed["trainer"]
    assert trainer.node.startswith("h100-")
    assert trainer.devices == tuple(f"{trainer.node}/gpu-{number}" for number in range(8))


def test_two_pods_of_a_shared_claim_have_the_same_device(placed: dict[str, Placement]) -> None:
    first, second = placed["server-0"], placed["server-1"]
    assert first.node == second.node == "l4-a"
    assert first.devices == second.devices == ("l4-a/gpu-1",)


def test_a_device_plugins_resource_is_found_where_it_is(placed: dict[str, Placement]) -> None:
    legacy = placed["legacy"]
    assert (legacy.node, legacy.devices, legacy.offered) == ("plugin-a", (), 1)
    assert set(legacy.reasons.values()) == {"Insufficient nvidia.com/gpu"}


def test_a_pod_without_accelerators_stays_off_their_nodes(placed: dict[str, Placement]) -> None:
    web = placed["web"]
    assert web.node in {"cpu-a", "cpu-b"}
    assert web.offered == 7


def test_what_can_not_fit_is_told_by_the_scheduler_and_by_berth(placed: dict[str, Placement]) -> None:
    giant = placed["giant"]
    assert (giant.node, giant.devices, giant.score) == ("", (), None)
    assert len(giant.reasons) == 7
    assert set(giant.reasons.values()) == {"cannot allocate all claims"}
    assert giant.explained == {"unpredicted NoFit": 7}


def test_the_bundled_fleet_is_ordinary_yaml() -> None:
    documents = [document for document in yaml.safe_load_all(FLEET.read_text()) if document]
    assert all({"apiVersion", "kind", "metadata"} <= set(document) for document in documents)
    read = bundled_fleet()
    assert sum(map(len, read.values())) == len(documents)
    assert len(read["Node"]) == 7


@pytest.mark.slow
def test_the_command_prints_the_table() -> None:
    ended = subprocess.run(command("demo"), capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    header = next(line for line in lines if "node" in line)
    assert [name for name in ("pod", "node", "devices", "score", "reasons") if name not in header] == []
    [trainer] = [line for line in lines if "default/trainer " in line]
    assert "gpu-7 (8)" in trainer
    [giant] = [line for line in lines if "default/giant " in line]
    assert "scheduler: 7x cannot allocate all claims" in giant
    assert "berth: 7x unpredicted NoFit" in giant
