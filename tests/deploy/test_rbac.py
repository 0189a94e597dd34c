"""Berth's ServiceAccount may do what Berth does and nothing else: asked of the real authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from extender.kube.kinds import CUSTOM_RESOURCE_DEFINITION, OPTIONAL, REQUIRED
from tests.deploy.manifests import BIND, NAMESPACE, SERVICE_ACCOUNT, Applier, build

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.controlplane

_DRA = "resource.k8s.io"
_READ = [
    ("", "nodes"),
    ("", "pods"),
    ("", "namespaces"),
    (_DRA, "resourceslices"),
    (_DRA, "resourceclaims"),
    (_DRA, "deviceclasses"),
    (_DRA, "devicetaintrules"),
    ("policy", "poddisruptionbudgets"),
    ("scheduling.k8s.io", "podgroups"),
    ("scheduling.k8s.io", "workloads"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
]


class Act(NamedTuple):
    """One thing that a ServiceAccount may or may not do; an empty namespace means in all of them."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_ALLOWED = [
    *(Act(verb, group, resource) for group, resource in _READ for verb in ("get", "list", "watch")),
    Act("create", "events.k8s.io", "events", "tenant"),
    Act("patch", "events.k8s.io", "events", "tenant"),
    Act("create", "authentication.k8s.io", "tokenreviews"),
    Act("create", "authorization.k8s.io", "subjectaccessreviews"),
    Act("create", "coordination.k8s.io", "leases", NAMESPACE),
    Act("get", "coordination.k8s.io", "leases", NAMESPACE, "berth"),
    Act("update", "coordination.k8s.io", "leases", NAMESPACE, "berth"),
    Act("patch", "", "pods", NAMESPACE, "berth-0"),
    Act("get", "", "configmaps", NAMESPACE, "berth-safety"),
]
_DENIED = [
    *(Act(verb, "", "secrets", NAMESPACE) for verb in ("get", "list", "watch")),
    *(
        Act(verb, "", "pods", NAMESPACE, "berth-0")
        for verb in ("create", "update", "delete", "deletecollection")
    ),
    *(Act(verb, "", "pods", "tenant", "p") for verb in ("create", "update", "patch", "delete")),
    *(
        Act("create", "", "pods", "tenant", "p", sub)
        for sub in ("exec", "eviction", "binding", "ephemeralcontainers")
    ),
    Act("get", "", "pods", "tenant", "p", "log"),
    Act("patch", "", "pods", "tenant", "p", "status"),
    *(Act(verb, "", "nodes", "", "n") for verb in ("create", "update", "patch", "delete")),
    Act("get", "", "nodes", "", "n", "proxy"),
    Act("patch", "", "nodes", "", "n", "status"),
    *(Act(verb, _DRA, "resourceclaims", "tenant", "c") for verb in ("create", "update", "patch", "delete")),
    *(
        Act(verb, _DRA, "resourceclaims", "tenant", "c", sub)
        for sub in ("status", "binding")
        for verb in ("update", "patch")
    ),
    *(Act(verb, _DRA, "resourceslices", "", "s") for verb in ("create", "update", "patch", "delete")),
    *(Act(verb, _DRA, "devicetaintrules", "", "r") for verb in ("create", "update", "patch", "delete")),
    Act("update", "coordination.k8s.io", "leases", NAMESPACE, "other"),
    Act("delete", "coordination.k8s.io", "leases", NAMESPACE, "berth"),
    Act("update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"),
    Act("get", "", "configmaps", NAMESPACE, "other"),
    Act("update", "", "configmaps", NAMESPACE, "berth-safety"),
    Act("list", "", "configmaps", NAMESPACE),
    Act("get", "", "configmaps", "tenant", "c"),
    Act("impersonate", "", "users"),
    Act("bind", "rbac.authorization.k8s.io", "clusterroles"),
    Act("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    Act("create", "", "serviceaccounts", NAMESPACE, "berth", "token"),
]


@pytest.fixture
def bind(deploy_cluster: ControlPlane, applied: Applier) -> Iterator[None]:
    """The overlay `bind` on top, for one test."""
    for obj in build(BIND):
        applied.apply(obj)
    yield
    deploy_cluster.client().delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "berth-bind")


def _may(cluster: ControlPlane, act: Act, user: str = SERVICE_ACCOUNT) -> bool:
    attributes = {name: value for name, value in act._asdict().items() if value}
    spec = {
        "user": user,
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
        "resourceAttributes": attributes,
    }
    return _allowed(cluster, spec)


def _allowed(cluster: ControlPlane, spec: Mapping[str, object]) -> bool:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = cluster.client().request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@pytest.mark.usefixtures("applied")
def test_berth_may_do_what_it_does(deploy_cluster: ControlPlane) -> None:
    assert [act for act in _ALLOWED if not _may(deploy_cluster, act)] == []


@pytest.mark.usefixtures("applied")
def test_berth_may_not_do_what_it_must_not(deploy_cluster: ControlPlane) -> None:
    assert [act for act in _DENIED if _may(deploy_cluster, act)] == []


def test_the_kinds_that_are_watched_are_among_them() -> None:
    watched = {(kind.group, kind.resource) for kind in (*REQUIRED, *OPTIONAL, CUSTOM_RESOURCE_DEFINITION)}
    assert watched == set(_READ)


@pytest.mark.usefixtures("bind")
def test_the_bind_overlay_adds_binding_and_nothing_else(deploy_cluster: ControlPlane) -> None:
    binding = Act("create", "", "pods", "tenant", "p", "binding")
    assert [act for act in _DENIED if _may(deploy_cluster, act)] == [binding]


@pytest.mark.usefixtures("applied")
def test_the_second_scheduler_holds_its_own_lease_and_may_bind(deploy_cluster: ControlPlane) -> None:
    user = f"system:serviceaccount:{NAMESPACE}:berth-scheduler"
    needed = [
        Act("update", "coordination.k8s.io", "leases", NAMESPACE, "berth-scheduler"),
        Act("create", "", "pods", "tenant", "p", "binding"),
        Act("update", _DRA, "resourceclaims", "tenant", "c", "status"),
        Act("list", _DRA, "resourceslices"),
        Act("list", "storage.k8s.io", "csinodes"),
        Act("get", "", "configmaps", "kube-system", "extension-apiserver-authentication"),
    ]
    assert [act for act in needed if not _may(deploy_cluster, act, user)] == []
    assert not _may(deploy_cluster, Act("update", "coordination.k8s.io", "leases", NAMESPACE, "berth"), user)


@pytest.mark.usefixtures("applied")
def test_a_reader_of_the_api_needs_the_readers_role(deploy_cluster: ControlPlane) -> None:
    admin = deploy_cluster.client()
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "berth-reader"}

    def may(path: str) -> bool:
        asked = {"path": f"/berth.scheduler{path}", "verb": "get"}
        spec = {"user": "jo", "groups": ["system:authenticated"], "nonResourceAttributes": asked}
        return _allowed(deploy_cluster, spec)

    assert not may("/api/v1/fleet")
    admin.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "jo-reads-berth"},
            "roleRef": role,
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "jo"}],
        }
    )
    assert may("/api/v1/fleet")
    assert may("/api/v1/nodes/gpu-1")
    assert not may("/api/v1/other")
