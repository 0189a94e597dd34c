"""Fixtures of the tests that run against a real control plane."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.cluster import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.controlplane.client import ApiClient

_DRA = "resource.k8s.io/v1"
_POLICIES = "admissionregistration.k8s.io/v1"
_CLUSTER_WIDE = [
    ("v1", "Node"),
    (_DRA, "ResourceSlice"),
    (_DRA, "DeviceClass"),
    (_DRA, "DeviceTaintRule"),
    (_POLICIES, "MutatingAdmissionPolicyBinding"),
    (_POLICIES, "MutatingAdmissionPolicy"),
]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane that all tests share; no scheduler runs yet."""
    with ControlPlane(folder=tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture
def admin(control_plane: ControlPlane) -> ApiClient:
    """A client that may do everything: for what a test sets up and looks at, never for what it tests."""
    return control_plane.client()


@pytest.fixture
def cluster(control_plane: ControlPlane, admin: ApiClient) -> Iterator[ControlPlane]:
    """The shared control plane without nodes, devices, pods or schedulers of an earlier test."""
    namespaces = {each["metadata"]["name"] for each in admin.list_all("v1", "Namespace")}
    schedulers = set(control_plane.components)
    yield control_plane
    for name in set(control_plane.components) - schedulers:
        control_plane.stop_scheduler(name)
    for api_version, kind in _CLUSTER_WIDE:
        admin.delete_all(api_version, kind)
    for each in admin.list_all("scheduling.k8s.io/v1", "PriorityClass"):
        if not each["metadata"]["name"].startswith("system-"):
            admin.delete("scheduling.k8s.io/v1", "PriorityClass", each["metadata"]["name"])
    for each in admin.list_all("v1", "Namespace"):
        name = each["metadata"]["name"]
        if name not in namespaces:
            for api_version, kind in [("v1", "Pod"), (_DRA, "ResourceClaim")]:
                admin.delete_all(api_version, kind, name)
            admin.delete("v1", "Namespace", name)


@pytest.fixture
def new_namespace(cluster: ControlPlane) -> Callable[..., str]:
    """Make a fresh namespace of the ``restricted`` Pod Security level; returns its name."""

    def make(level: str = "restricted") -> str:
        labels = {"pod-security.kubernetes.io/enforce": level}
        return cluster.create_namespace(f"test-{uuid.uuid4().hex[:10]}", labels)

    return make


@pytest.fixture
def namespace(new_namespace: Callable[..., str]) -> str:
    """The name of a fresh namespace of the ``restricted`` Pod Security level."""
    return new_namespace()
