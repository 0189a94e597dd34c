"""`berth fleet --cluster` and `berth explain --cluster` against a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import objects
from tests.controlplane.client import ApiClient
from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.controlplane


def berth(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "BERTH_KUBE__KUBECONFIG": str(kubeconfig)}
    command = [sys.executable, "-m", "extender", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environ, check=False)


def test_the_clusters_devices_are_shown(cluster: ControlPlane, admin: ApiClient) -> None:
    for name in ("gpu-a", "gpu-b"):
        objects.register_gpu_node(admin, name)
    ended = berth(cluster.kubeconfig(), "fleet", "--cluster", "--json")
    assert ended.returncode == 0, ended.stderr
    page = json.loads(ended.stdout)
    free = {node["name"]: sum(count["free"] for count in node["devices"]) for node in page["nodes"]}
    assert free == {"gpu-a": 8, "gpu-b": 8}


def test_a_pod_of_the_cluster_is_explained_with_its_devices(
    cluster: ControlPlane, admin: ApiClient, namespace: str
) -> None:
    objects.register_gpu_node(admin, "gpu-a")
    admin.create(objects.device_class())
    admin.create(objects.claim("two", 2, namespace=namespace))
    admin.create(objects.pod("asks", namespace=namespace, claims=["two"]))
    ended = berth(cluster.kubeconfig(), "explain", f"{namespace}/asks", "--cluster", "--json")
    assert ended.returncode == 0, ended.stderr
    [node] = json.loads(ended.stdout)["nodes"]
    assert (node["name"], node["verdict"], len(node["predicted"])) == ("gpu-a", "passed", 2)


def test_a_cluster_without_rights_is_an_error_and_not_a_traceback(cluster: ControlPlane) -> None:
    ended = berth(cluster.kubeconfig(token="wrong"), "fleet", "--cluster")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "401" in ended.stderr
