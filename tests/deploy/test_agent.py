"""The manifests of the node agent: they build, a real API server takes them, and they fit the settings."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from extender import settings
from extender.telemetry.agent.settings import AgentSettings
from tests.controlplane.cluster import ControlPlane
from tests.deploy.manifests import DEPLOY, NAMESPACE, TELEMETRY, Applier, build, of_kind

pytestmark = pytest.mark.controlplane

AGENT = "berth-agent"


def _daemon_set() -> dict[str, Any]:
    (found,) = of_kind(build(TELEMETRY), "DaemonSet")
    return found


def _pod() -> dict[str, Any]:
    spec = copy.deepcopy(_daemon_set()["spec"]["template"]["spec"])
    meta = {"generateName": "agent-test-", "namespace": AGENT, "labels": {"test": "agent"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def overlay(deploy_cluster: ControlPlane, applied: Applier) -> Iterator[Applier]:
    """The overlay applied, and the RuntimeClass that NVIDIA's toolkit brings."""
    for obj in build(TELEMETRY):
        if obj["kind"] not in {"Deployment", "PodDisruptionBudget"}:
            applied.apply(obj)
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
    deploy_cluster.client().apply({**runtime, "metadata": {"name": "nvidia"}})
    yield applied
    # The tests of rights stand on what has no right to nudge.
    deploy_cluster.client().delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "berth-nudge")


def test_the_agents_settings_load_and_fit_berths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DEPLOY)
    file = DEPLOY / "components" / "agent" / "files" / "agent.yaml"
    agent = settings.load_model(AgentSettings, file, {"BERTH_AGENT__NODE_NAME": "n"}, "BERTH_AGENT__")
    berth = settings.load(DEPLOY / "base" / "files" / "berth.yaml", {})
    assert agent.target == f"https://berth-telemetry.{NAMESPACE}.svc:{berth.server.port}"
    assert berth.telemetry.accounts == (f"system:serviceaccount:{AGENT}:{AGENT}",)
    (container,) = _daemon_set()["spec"]["template"]["spec"]["containers"]
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    for path in (agent.token_file, agent.ca_file, agent.state_dir):
        assert any(str(path).startswith(mount) for mount in mounts), path
    assert container["ports"][0]["containerPort"] == agent.listen_port
    (token,) = [
        source["serviceAccountToken"]
        for volume in _daemon_set()["spec"]["template"]["spec"]["volumes"]
        for source in volume.get("projected", {}).get("sources", ())
    ]
    assert token["audience"] == berth.telemetry.audience
    assert str(agent.token_file).endswith(f"/{token['path']}")


def test_the_image_is_berths() -> None:
    images = {
        container["image"]
        for kind in ("Deployment", "DaemonSet")
        for each in of_kind(build(TELEMETRY), kind)
        for container in each["spec"]["template"]["spec"]["containers"]
    }
    assert len(images) == 1


def test_the_overlay_is_applied_strictly_without_a_warning(overlay: Applier) -> None:
    assert overlay.warnings == []


def test_a_pod_of_the_template_is_admitted(overlay: Applier) -> None:
    assert overlay.create(_pod())["spec"]["runtimeClassName"] == "nvidia"


def test_nothing_but_the_hosts_process_ids_keeps_it_from_the_restricted_level(
    deploy_cluster: ControlPlane, overlay: Applier
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    deploy_cluster.create_namespace("strict", labels)
    deploy_cluster.client().apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": AGENT, "namespace": "strict"},
        }
    )
    pod = _pod()
    pod["metadata"]["namespace"] = "strict"
    with pytest.raises(httpx.HTTPStatusError) as refusal:
        overlay.create(copy.deepcopy(pod))
    assert "hostPID" in refusal.value.response.text
    del pod["spec"]["hostPID"]
    # The class of system-node-critical is free for every namespace.
    assert overlay.create(pod)["metadata"]["namespace"] == "strict"


def test_the_daemon_sets_controller_makes_a_pod_on_a_gpu_node_only(
    deploy_cluster: ControlPlane, overlay: Applier
) -> None:
    assert overlay is not None
    admin = deploy_cluster.client()
    for name, labels in (("with-gpu", {"nvidia.com/gpu.present": "true"}), ("without", {})):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        admin.create(node)
    seen = admin.wait(
        "apps/v1",
        "DaemonSet",
        AGENT,
        lambda each: (
            each.get("status", {}).get("currentNumberScheduled", 0) >= 1
            or each.get("status", {}).get("desiredNumberScheduled", 0) >= 1
        ),
        AGENT,
    )
    assert seen["status"]["desiredNumberScheduled"] == 1
    for name in ("with-gpu", "without"):
        admin.delete("v1", "Node", name)


def test_the_right_to_quarantine_is_for_rules_alone() -> None:
    text = (DEPLOY / "components" / "quarantine" / "rbac.yaml").read_text()
    role, binding = yaml.safe_load_all(text)
    (rule,) = role["rules"]
    assert rule["resources"] == ["devicetaintrules"]
    assert set(rule["verbs"]) == {"get", "list", "watch", "create", "delete"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "berth", "namespace": NAMESPACE}]


def test_the_agents_account_is_bound_to_no_role() -> None:
    bindings = [each for each in build(TELEMETRY) if each["kind"].endswith("RoleBinding")]
    names = {subject["name"] for each in bindings for subject in each["subjects"]}
    assert AGENT not in names
