"""The real API server takes the manifests without a warning, and Pod Security admits their Pods."""

from __future__ import annotations

import copy
from typing import Any

import httpx
import pytest
import yaml

from tests.controlplane.cluster import ControlPlane
from tests.deploy import manifests
from tests.deploy.manifests import BIND, NAMESPACE, SECOND_SCHEDULER, Applier, build, of_kind

pytestmark = pytest.mark.controlplane


def _pod(deployment: dict[str, Any]) -> dict[str, Any]:
    template = copy.deepcopy(deployment["spec"]["template"])
    meta = {
        **template["metadata"],
        "generateName": f"{deployment['metadata']['name']}-test-",
        "namespace": NAMESPACE,
    }
    # The label that the ReplicaSets select on is left out, so that they don't adopt it.
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "labels": {"test": "admission"}},
        "spec": template["spec"],
    }


def test_the_manifests_are_applied_strictly_without_a_warning(
    deploy_cluster: ControlPlane, applied: Applier
) -> None:
    for obj in build(BIND):
        applied.apply(obj)
    assert applied.warnings == []
    # The tests of rights stand on what has no right to bind.
    deploy_cluster.client().delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "berth-bind")


def test_applying_again_changes_nothing(applied: Applier) -> None:
    # Deployments and budgets are left out: their controllers write status beside us.
    kinds = {"Deployment", "PodDisruptionBudget"}
    objects = [each for each in build(SECOND_SCHEDULER) if each["kind"] not in kinds]
    first = [applied.apply(obj)["metadata"]["resourceVersion"] for obj in objects]
    assert [applied.apply(obj)["metadata"]["resourceVersion"] for obj in objects] == first


def test_the_namespace_enforces_the_restricted_level(applied: Applier) -> None:
    (deployment,) = (
        each for each in of_kind(build(SECOND_SCHEDULER), "Deployment") if each["metadata"]["name"] == "berth"
    )
    pod = _pod(deployment)
    del pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"]
    with pytest.raises(httpx.HTTPStatusError) as refusal:
        applied.create(pod)
    assert refusal.value.response.status_code == 403
    assert "allowPrivilegeEscalation" in refusal.value.response.text


@pytest.mark.parametrize("name", ["berth", "berth-scheduler"])
def test_a_pod_of_the_template_is_admitted(applied: Applier, name: str) -> None:
    (deployment,) = (
        each for each in of_kind(build(SECOND_SCHEDULER), "Deployment") if each["metadata"]["name"] == name
    )
    pod = applied.create(_pod(deployment))
    assert pod["spec"]["priority"] == 1_000_000_000
    assert applied.warnings == []


@pytest.mark.usefixtures("applied")
@pytest.mark.parametrize("name", ["berth", "berth-scheduler"])
def test_the_deployments_own_controller_makes_both_replicas(deploy_cluster: ControlPlane, name: str) -> None:
    admin = deploy_cluster.client()
    seen = admin.wait(
        "apps/v1",
        "Deployment",
        name,
        lambda each: each.get("status", {}).get("replicas") == 2,
        NAMESPACE,
    )
    assert "ReplicaFailure" not in {each["type"] for each in seen["status"].get("conditions", [])}


def test_a_pod_can_be_bound_by_hand_when_no_scheduler_can(
    deploy_cluster: ControlPlane, applied: Applier
) -> None:
    # The way out in docs/install.md for a cluster whose only scheduler asks a Berth that is down.
    admin = deploy_cluster.client()
    (deployment,) = (
        each for each in of_kind(build(manifests.BASE), "Deployment") if each["metadata"]["name"] == "berth"
    )
    name = applied.create(_pod(deployment))["metadata"]["name"]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "some-node"},
    }
    admin.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding", binding)
    assert admin.get("v1", "Pod", name, NAMESPACE)["spec"]["nodeName"] == "some-node"


def test_applying_again_leaves_the_switch_as_it_was_switched(
    deploy_cluster: ControlPlane, applied: Applier
) -> None:
    admin = deploy_cluster.client()
    (switch,) = (each for each in build(manifests.BASE) if each["metadata"]["name"] == "berth-safety")
    admin.patch("v1", "ConfigMap", "berth-safety", {"data": {"vetoes": "off"}}, NAMESPACE)
    assert applied.apply(switch)["data"] == {"vetoes": "off"}
    admin.patch("v1", "ConfigMap", "berth-safety", {"data": None}, NAMESPACE)


def test_the_example_is_accepted_as_it_stands(applied: Applier) -> None:
    path = manifests.DEPLOY / "examples" / "first-pod.yaml"
    kinds = [applied.apply(each)["kind"] for each in yaml.safe_load_all(path.read_text())]
    assert kinds == ["ResourceClaimTemplate", "Pod"]
    assert applied.warnings == []
