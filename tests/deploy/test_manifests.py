"""What deploy/ builds is whole and consistent, before any cluster sees it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from extender import settings
from tests.deploy import manifests
from tests.deploy.manifests import ALL, BASE, BIND, DEPLOY, NAMESPACE, ROOT, SECOND_SCHEDULER, build, of_kind

pytestmark = pytest.mark.controlplane  # kustomize lives in the control plane's binary

_CLUSTER_WIDE = {"Namespace", "PriorityClass", "ClusterRole", "ClusterRoleBinding"}


def _pod_specs(name: str) -> list[Any]:
    return [each["spec"]["template"]["spec"] for each in of_kind(build(name), "Deployment")]


@pytest.mark.parametrize("name", ALL)
def test_every_object_names_its_namespace(name: str) -> None:
    for each in build(name):
        spaces = {each["metadata"].get("namespace")}
        if each["kind"] in _CLUSTER_WIDE:
            assert spaces == {None}, each["metadata"]["name"]
        else:
            assert spaces <= {NAMESPACE, "kube-system"}, each["metadata"]["name"]


@pytest.mark.parametrize("name", ALL)
def test_every_volume_and_account_of_a_pod_is_there_or_a_secret_made_by_people(name: str) -> None:
    objects = build(name)
    maps = {each["metadata"]["name"] for each in of_kind(objects, "ConfigMap")}
    accounts = {each["metadata"]["name"] for each in of_kind(objects, "ServiceAccount")}
    classes = {each["metadata"]["name"] for each in of_kind(objects, "PriorityClass")}
    for spec in _pod_specs(name):
        assert spec["serviceAccountName"] in accounts
        assert spec["priorityClassName"] in classes
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert volume["configMap"]["name"] in maps
            else:
                assert volume["secret"]["secretName"] in {"berth-tls", "berth-scheduler-tls"}


@pytest.mark.parametrize("name", ALL)
def test_no_variable_of_a_service_is_taken_for_a_setting(name: str) -> None:
    # Links would set BERTH_SERVICE_HOST and the like, and unknown BERTH_* variables are errors.
    assert [spec["enableServiceLinks"] for spec in _pod_specs(name)] == [False] * len(_pod_specs(name))


def test_the_schedulers_service_selects_the_leader_and_the_other_all_replicas() -> None:
    objects = build(BASE)
    labels = of_kind(objects, "Deployment")[0]["spec"]["template"]["metadata"]["labels"]
    services = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "Service")}
    assert services["berth"]["selector"] == {**labels, "berth.scheduler/leader": "true"}
    assert services["berth-telemetry"]["selector"] == labels
    assert services["berth-telemetry"]["clusterIP"] == "None"
    assert "berth.scheduler/leader" not in labels


def test_the_settings_file_loads_and_fits_the_deployment() -> None:
    read = settings.load(DEPLOY / "base" / "files" / "berth.yaml", {})
    (spec,) = _pod_specs(BASE)
    (container,) = spec["containers"]
    assert read.kube.namespace == NAMESPACE
    assert container["ports"][0]["containerPort"] == read.server.port
    assert container["args"] == ["serve", "--config", "/etc/berth/berth.yaml"]
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert read.server.tls is not None
    for path in (read.server.tls.cert_file, read.server.tls.client_ca_file, read.policy.file):
        assert any(str(path).startswith(mount) for mount in mounts), path
    assert NAMESPACE in read.scheduler.excluded_namespaces
    assert spec["terminationGracePeriodSeconds"] > read.server.shutdown_grace_seconds


def test_the_roles_name_the_lease_and_the_switch_of_the_settings() -> None:
    read = settings.load(DEPLOY / "base" / "files" / "berth.yaml", {})
    objects = build(BASE)
    rules = next(each["rules"] for each in of_kind(objects, "Role") if each["metadata"]["name"] == "berth")
    named = {rule["resources"][0]: rule["resourceNames"] for rule in rules if "resourceNames" in rule}
    assert named == {
        "leases": [read.leader_election.lease_name],
        "configmaps": [read.scheduler.safety_config_map],
    }
    assert read.scheduler.safety_config_map in {
        each["metadata"]["name"] for each in of_kind(objects, "ConfigMap")
    }


def test_only_the_bind_overlay_may_bind() -> None:
    def binders(name: str) -> list[str]:
        return [
            role["metadata"]["name"]
            for role in of_kind(build(name), "ClusterRole")
            for rule in role["rules"]
            if "pods/binding" in rule.get("resources", [])
        ]

    assert [binders(name) for name in ALL] == [[], ["berth-bind"], []]


def test_the_nudge_component_may_patch_pods_and_nothing_else() -> None:
    role = next(yaml.safe_load_all((DEPLOY / "components" / "nudge" / "rbac.yaml").read_text()))
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}]


def test_the_bind_overlay_changes_the_schedulers_file_by_its_bind_verb_alone() -> None:
    base, bind = (yaml.safe_load(manifests.scheduler_config(name)) for name in (BASE, BIND))
    assert bind["extenders"][0].pop("bindVerb") == "bind"
    assert bind == base


def test_the_second_scheduler_differs_from_the_first_by_its_name_lease_and_files() -> None:
    base, second = (yaml.safe_load(manifests.scheduler_config(name)) for name in (BASE, SECOND_SCHEDULER))
    assert second["profiles"][0].pop("schedulerName") == "berth-scheduler"
    assert base["profiles"][0].pop("schedulerName") == "default-scheduler"
    for config in (base, second):
        del config["leaderElection"]
        config["clientConnection"].pop("kubeconfig", None)
        del config["extenders"][0]["tlsConfig"]
    assert second == base


def test_the_policy_of_the_config_map_is_the_repositorys() -> None:
    ours = (DEPLOY / "base" / "files" / "policies" / "default.yaml").read_text()
    assert ours == (ROOT / "policies" / "default.yaml").read_text()
