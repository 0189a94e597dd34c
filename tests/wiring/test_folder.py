"""The desk of a folder, which `berth fleet --from` and `berth explain --from` show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from extender.model.errors import SettingsError
from extender.settings import load
from extender.verbs.ports import ReadDesk
from extender.wiring.folder import folder_core, folder_desk, published_devices

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "extender" / "sim" / "fleets" / "demo.yaml"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: asks, namespace: team, uid: u-1}
spec:
  schedulerName: berth-scheduler
  resourceClaims: [{name: gpu, resourceClaimName: one}]
  containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: team, uid: c-1}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
"""


def desk_of(path: Path) -> ReadDesk:
    environ = {"BERTH_POLICY__FILE": str(ROOT / "policies" / "default.yaml")}
    return folder_desk(load(None, environ), "1.2.3", path)[0]


def test_the_fleet_of_a_file_is_shown_with_its_totals() -> None:
    fleet = desk_of(FLEET).fleet("", 250)
    assert sum(count.total for count in fleet.totals) == 28
    assert len(fleet.nodes) == fleet.node_count == 7


def test_a_pod_of_a_folder_is_explained_with_its_device(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.read_text())
    (tmp_path / "pod.yaml").write_text(POD)
    explained = desk_of(tmp_path).explain_existing("team", "asks", [], 50)
    assert explained is not None
    predicted = {node.name: node.predicted for node in explained.nodes}
    assert predicted["l4-a"][0].device == "gpu.nvidia.com/l4-a/gpu-0"


def test_every_published_device_is_there_for_selectors() -> None:
    environ = {"BERTH_POLICY__FILE": str(ROOT / "policies" / "default.yaml")}
    devices = dict(published_devices(folder_core(load(None, environ), "1.2.3", FLEET)[0]))
    assert len(devices) == 28
    assert devices["gpu.nvidia.com/l4-a/gpu-0"].driver == "gpu.nvidia.com"


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no YAML file there"):
        desk_of(tmp_path)


def test_a_document_that_is_no_kubernetes_object_is_named_and_skipped(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.read_text())
    (tmp_path / "notes.yaml").write_text("just: notes\n")
    command = [sys.executable, "-m", "extender", "fleet", "--from", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert ended.returncode == 0
    assert f"skipped {tmp_path / 'notes.yaml'}" in ended.stderr
    assert "h100-a" in ended.stdout
