"""The control plane that other tests stand on is a real one and does what they count on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.controlplane import objects
from tests.controlplane.client import ApiClient, ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.flags import ISSUER, Options
from tests.controlplane.processes import ComponentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.controlplane

_DRA = "resource.k8s.io/v1"


def _bound(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _waiting(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "PodScheduled" and each["reason"] == "Unschedulable" for each in conditions)


def _publish(admin: ApiClient, *nodes: str) -> None:
    admin.create(objects.device_class())
    for name in nodes:
        objects.register_gpu_node(admin, name)


def _devices(claim: dict[str, Any]) -> list[tuple[str, str]]:
    results = claim["status"]["allocation"]["devices"]["results"]
    return [(each["pool"], each["device"]) for each in results]


def test_it_is_the_release_that_it_claims_to_be(admin: ApiClient) -> None:
    assert admin.request("GET", "/version")["gitVersion"] == "v1.37.2"


def test_it_is_up_within_a_minute(control_plane: ControlPlane) -> None:
    print(f"control plane up in {control_plane.started_in:.1f} s")
    assert control_plane.started_in < 60


def test_a_claim_pod_is_bound_and_gets_the_first_device(
    cluster: ControlPlane, admin: ApiClient, namespace: str
) -> None:
    _publish(admin, "gpu-node")
    cluster.start_scheduler()
    admin.create(objects.claim_template("one", namespace=namespace))
    admin.create(objects.pod("trainer", namespace=namespace, templates=["one"]))

    pod = admin.wait("v1", "Pod", "trainer", _bound, namespace)

    assert pod["spec"]["nodeName"] == "gpu-node"
    (claim,) = admin.list_all(_DRA, "ResourceClaim", namespace)
    assert _devices(claim) == [("gpu-node", "gpu-0")]


def test_a_selector_chooses_among_products(cluster: ControlPlane, admin: ApiClient, namespace: str) -> None:
    _publish(admin, "h100")
    objects.register_gpu_node(admin, "l4", gpus=2, product=objects.L4)
    cluster.start_scheduler()
    wanted = "device.attributes['gpu.nvidia.com'].productName.contains('L4')"
    admin.create(objects.claim("small", 2, namespace=namespace, selectors=[wanted]))
    admin.create(objects.pod("server", namespace=namespace, claims=["small"]))

    admin.wait("v1", "Pod", "server", _bound, namespace)

    claim = admin.get(_DRA, "ResourceClaim", "small", namespace)
    assert _devices(claim) == [("l4", "gpu-0"), ("l4", "gpu-1")]


def test_an_extended_resource_is_served_by_a_device_class(
    cluster: ControlPlane, admin: ApiClient, namespace: str
) -> None:
    _publish(admin, "gpu-node")
    cluster.start_scheduler()
    admin.create(objects.pod("trainer", namespace=namespace, gpus=2))

    admin.wait("v1", "Pod", "trainer", _bound, namespace)

    (claim,) = admin.list_all(_DRA, "ResourceClaim", namespace)
    assert _devices(claim) == [("gpu-node", "gpu-0"), ("gpu-node", "gpu-1")]


def test_device_plugin_gpus_are_counted(cluster: ControlPlane, admin: ApiClient, namespace: str) -> None:
    objects.register_node(admin, objects.device_plugin_node("gpu-node", gpus=2))
    cluster.start_scheduler()
    admin.create(objects.pod("first", namespace=namespace, gpus=2))
    admin.wait("v1", "Pod", "first", _bound, namespace)
    admin.create(objects.pod("second", namespace=namespace, gpus=1))

    second = admin.wait("v1", "Pod", "second", _waiting, namespace)

    assert not _bound(second)
    assert not admin.list_all(_DRA, "ResourceClaim", namespace)


def test_a_second_scheduler_serves_the_pods_that_name_it(
    cluster: ControlPlane, admin: ApiClient, namespace: str
) -> None:
    objects.register_node(admin, objects.cpu_node("cpu-node"))
    config = """\
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles:
          - schedulerName: second
    """
    cluster.start_scheduler(config, name="second")
    admin.create(objects.pod("theirs", namespace=namespace))
    admin.create(objects.pod("ours", namespace=namespace, scheduler="second"))

    admin.wait("v1", "Pod", "ours", _bound, namespace)

    assert not _bound(admin.get("v1", "Pod", "theirs", namespace))
    assert "scheduler_schedule_attempts_total" in cluster.scheduler_metrics("second")


def test_a_frozen_scheduler_binds_nothing_until_it_is_thawed(
    cluster: ControlPlane, admin: ApiClient, namespace: str
) -> None:
    objects.register_node(admin, objects.cpu_node("cpu-node"))
    scheduler = cluster.start_scheduler()
    scheduler.freeze()
    admin.create(objects.pod("waits", namespace=namespace))
    with pytest.raises(TimeoutError, match="waits"):
        admin.wait("v1", "Pod", "waits", _bound, namespace, seconds=1)

    scheduler.thaw()

    admin.wait("v1", "Pod", "waits", _bound, namespace)


@pytest.mark.parametrize("abruptly", [False, True])
def test_objects_and_clients_survive_a_restart_of_the_api_server(
    cluster: ControlPlane, admin: ApiClient, namespace: str, abruptly: bool
) -> None:
    objects.register_node(admin, objects.cpu_node("cpu-node"))
    cluster.start_scheduler()
    began = time.monotonic()

    cluster.restart_apiserver(abruptly=abruptly)

    print(f"API server restarted in {time.monotonic() - began:.1f} s")
    admin.create(objects.pod("later", namespace=namespace))
    admin.wait("v1", "Pod", "later", _bound, namespace, seconds=60)


def test_a_watch_from_before_an_expired_history_is_answered_410(
    cluster: ControlPlane, admin: ApiClient
) -> None:
    objects.register_node(admin, objects.cpu_node("cpu-node"))
    version = admin.get("v1", "Node", "cpu-node")["metadata"]["resourceVersion"]

    cluster.expire_history()

    assert _watch_status(admin, version) == 410


def test_a_watch_from_a_version_in_the_history_goes_on(cluster: ControlPlane, admin: ApiClient) -> None:
    objects.register_node(admin, objects.cpu_node("cpu-node"))
    version = admin.get("v1", "Node", "cpu-node")["metadata"]["resourceVersion"]
    admin.patch("v1", "Node", "cpu-node", {"metadata": {"labels": {"changed": "yes"}}})
    assert cluster.components["etcd"].running

    assert _watch_status(admin, version) == 200


def _watch_status(admin: ApiClient, version: str) -> int:
    try:
        for event in admin.watch("v1", "Node", version, seconds=5):
            return int(event["object"]["code"]) if event["type"] == "ERROR" else 200
    except ApiError as refusal:
        return refusal.status
    return 0


def test_a_token_for_an_audience_passes_its_review_and_no_other(
    cluster: ControlPlane, admin: ApiClient, namespace: str
) -> None:
    token = cluster.service_account_token(namespace, "default", audiences=["berth"])

    for audience, passes in [("berth", True), (ISSUER, False)]:
        review = admin.create(
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "metadata": {},
                "spec": {"token": token, "audiences": [audience]},
            }
        )
        assert review["status"].get("authenticated", False) is passes
        if passes:
            assert review["status"]["user"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_a_pod_bound_token_names_the_node(cluster: ControlPlane, admin: ApiClient, namespace: str) -> None:
    objects.register_node(admin, objects.cpu_node("cpu-node"))
    pod = admin.create(objects.pod("agent", namespace=namespace, spec={"nodeName": "cpu-node"}))
    token = cluster.service_account_token(namespace, "default", audiences=["berth"], pod=pod)

    review = admin.create(
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token, "audiences": ["berth"]},
        }
    )

    extra = review["status"]["user"]["extra"]
    assert extra["authentication.kubernetes.io/node-name"] == ["cpu-node"]


def test_a_service_account_may_do_what_rbac_allows_and_nothing_else(
    cluster: ControlPlane, admin: ApiClient, namespace: str
) -> None:
    api = "rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    admin.create(
        {
            "apiVersion": api,
            "kind": "Role",
            "metadata": {"name": "r", "namespace": namespace},
            "rules": [rule],
        }
    )
    admin.create(
        {
            "apiVersion": api,
            "kind": "RoleBinding",
            "metadata": {"name": "r", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        }
    )
    account = cluster.client(cluster.service_account_token(namespace, "default"))

    assert account.list_all("v1", "Pod", namespace) == []
    with pytest.raises(ApiError) as refused:
        account.list_all("v1", "Secret", namespace)
    assert refused.value.status == 403


def test_an_access_review_answers_for_a_user(admin: ApiClient, cluster: ControlPlane) -> None:
    assert cluster.url
    verdicts = [
        admin.create(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "metadata": {},
                "spec": {
                    "user": user,
                    "groups": groups,
                    "nonResourceAttributes": {"path": "/api/v1/fleet", "verb": "get"},
                },
            }
        )["status"]["allowed"]
        for user, groups in [("admin", ["system:masters"]), ("nobody", [])]
    ]
    assert verdicts == [True, False]


def test_a_namespace_keeps_its_pod_security_level(
    admin: ApiClient, new_namespace: Callable[..., str]
) -> None:
    pod = objects.pod("rooted", namespace=new_namespace("restricted"))
    pod["spec"]["securityContext"] = {}

    with pytest.raises(ApiError, match="violates PodSecurity") as refused:
        admin.create(pod)
    assert refused.value.status == 403


def test_server_side_apply_of_a_kind_that_came_later(admin: ApiClient, cluster: ControlPlane) -> None:
    name = "things.tests.berth.scheduler"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": "tests.berth.scheduler",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }
    thing = {"apiVersion": "tests.berth.scheduler/v1", "kind": "Thing", "metadata": {"name": "a"}, "size": 1}
    with pytest.raises(LookupError, match="does not serve Thing"):
        admin.apply(thing)
    admin.apply(definition)
    try:
        admin.wait("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, _established)
        admin.apply(thing)
        assert admin.apply({**thing, "size": 2})["size"] == 2
    finally:
        admin.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    assert cluster.components["kube-apiserver"].running


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane beside the shared one that differs from it in every option."""
    options = Options(
        feature_gates={"GenericWorkload": True},
        runtime_config={"scheduling.k8s.io/v1beta1": True},
        watch_cache=False,
        users={"reader": ["system:monitoring"]},
        apiserver_flags=["--max-requests-inflight=123"],
    )
    with ControlPlane(options, folder=tmp_path_factory.mktemp("other")) as running:
        yield running


def test_gates_and_versions_can_be_chosen(other: ControlPlane) -> None:
    served = other.client().request("GET", "/apis/scheduling.k8s.io/v1beta1")["resources"]
    assert "podgroups" in {each["name"] for each in served}


def test_a_user_of_the_options_has_its_groups(other: ControlPlane) -> None:
    reader = other.client(other.token("reader"))
    assert "apiserver_" in reader.request("GET", "/metrics")
    with pytest.raises(ApiError, match="reader"):
        reader.list_all("v1", "Node")


def test_without_the_watch_cache_a_compaction_is_enough_for_410(other: ControlPlane) -> None:
    admin = other.client()
    node = objects.register_node(admin, objects.cpu_node("cpu-node"))
    version = node["metadata"]["resourceVersion"]

    other.compact()

    assert _watch_status(admin, version) == 410


def test_a_component_that_cannot_start_shows_its_log(cluster: ControlPlane) -> None:
    with pytest.raises(ComponentError, match="unknown flag: --no-such-flag"):
        cluster.start_scheduler(name="faulty", more_flags=["--no-such-flag"])
    assert "faulty" not in cluster.components


def test_nothing_outlives_a_killed_test_process(tmp_path: Path) -> None:
    program = (
        "import json, pathlib, sys, time\n"
        "from tests.controlplane.cluster import ControlPlane\n"
        "plane = ControlPlane(folder=pathlib.Path(sys.argv[1])); plane.start(); plane.start_scheduler()\n"
        "print(json.dumps([each.pid for each in plane.components.values()]), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
    ) as child:
        assert child.stdout is not None
        processes = [psutil.Process(pid) for pid in json.loads(child.stdout.readline())]
        child.kill()
    assert len(processes) == 4

    _, alive = psutil.wait_procs(processes, timeout=10)

    assert alive == []
