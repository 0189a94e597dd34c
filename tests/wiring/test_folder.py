"""`berth fleet --from` and `berth explain --from`: the desk of a folder, through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def berth(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "extender", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)


def test_the_fleet_of_a_file_is_shown_with_its_totals() -> None:
    ended = berth("fleet", "--from", str(FLEET), "--json")
    assert ended.returncode == 0, ended.stderr
    page = json.loads(ended.stdout)
    assert sum(count["total"] for count in page["totals"]) == 28
    assert len(page["nodes"]) == page["nodeCount"] == 7


def test_a_pod_of_a_folder_is_explained_with_its_device(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.read_text())
    (tmp_path / "pod.yaml").write_text(POD)
    ended = berth("explain", "team/asks", "--from", str(tmp_path), "--json")
    assert ended.returncode == 0, ended.stderr
    nodes = {node["name"]: node for node in json.loads(ended.stdout)["nodes"]}
    assert nodes["l4-a"]["predicted"][0]["device"] == "gpu.nvidia.com/l4-a/gpu-0"


def test_a_document_that_is_no_kubernetes_object_is_named_and_skipped(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.read_text())
    (tmp_path / "notes.yaml").write_text("just: notes\n")
    ended = berth("fleet", "--from", str(tmp_path))
    assert ended.returncode == 0
    assert f"skipped {tmp_path / 'notes.yaml'}" in ended.stderr
    assert "h100-a" in ended.stdout


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    ended = berth("fleet", "--from", str(tmp_path))
    assert (ended.returncode, "no YAML file there" in ended.stderr) == (2, True)
