"""The kinds that we watch: where they live, which versions we can read, and their decoders.

Owns: the table. Never: requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from extender.api.base import Wire
from extender.api.core import Namespace, Node, Pod
from extender.api.meta import ObjectMeta
from extender.api.policy import PodDisruptionBudget
from extender.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from extender.api.scheduling import PodGroup, Workload
from extender.api.watch import PartialObject


class KubernetesObject(Protocol):
    """Any object of the API: it has metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, UID, resourceVersion and so on."""


T_co = TypeVar("T_co", bound=KubernetesObject, covariant=True)


class TypedEvent(Wire, Generic[T_co], frozen=True, gc=False):
    """A watch line with its object decoded in the same pass (a Raw would be scanned twice)."""

    object: T_co
    type: str = ""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """A kind of objects.

    Attributes:
        name: the Kubernetes kind.
        group: the API group, empty for core.
        resource: plural, as in paths.
        versions: versions whose objects `struct` can read, the preferred one first.
        struct: the msgspec Struct.
        field_selector: narrows list and watch on the server.
        optional: whether a cluster may go without it; then discovery decides.
    """

    name: str
    group: str
    resource: str
    versions: tuple[str, ...]
    struct: type[T_co]
    field_selector: str = ""
    optional: bool = False

    def path(self, version: str) -> str:
        """The path of the collection over all namespaces."""
        if self.group:
            return f"/apis/{self.group}/{version}/{self.resource}"
        return f"/api/{version}/{self.resource}"

    def decoder(self) -> msgspec.json.Decoder[T_co]:
        """Reads one object."""
        return msgspec.json.Decoder(self.struct)

    def event_decoder(self) -> msgspec.json.Decoder[TypedEvent[T_co]]:
        """Reads one watch line."""
        struct = self.struct
        return msgspec.json.Decoder(TypedEvent[struct])  # type: ignore[valid-type]  # a type known at run time


NODE = Kind("Node", "", "nodes", ("v1",), Node)
POD = Kind(
    "Pod",
    "",
    "pods",
    ("v1",),
    Pod,
    # As kube-scheduler's own informer: finished pods hold nothing.
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
NAMESPACE = Kind("Namespace", "", "namespaces", ("v1",), Namespace)
RESOURCE_SLICE = Kind("ResourceSlice", "resource.k8s.io", "resourceslices", ("v1",), ResourceSlice)
RESOURCE_CLAIM = Kind("ResourceClaim", "resource.k8s.io", "resourceclaims", ("v1",), ResourceClaim)
DEVICE_CLASS = Kind("DeviceClass", "resource.k8s.io", "deviceclasses", ("v1",), DeviceClass)
POD_DISRUPTION_BUDGET = Kind(
    "PodDisruptionBudget", "policy", "poddisruptionbudgets", ("v1",), PodDisruptionBudget
)
WORKLOAD = Kind(
    "Workload",
    "scheduling.k8s.io",
    "workloads",
    ("v1", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"),
    Workload,
    optional=True,
)
POD_GROUP = Kind(
    "PodGroup",
    "scheduling.k8s.io",
    "podgroups",
    ("v1", "v1beta1", "v1alpha3", "v1alpha2"),
    PodGroup,
    optional=True,
)
DEVICE_TAINT_RULE = Kind(
    "DeviceTaintRule",
    "resource.k8s.io",
    "devicetaintrules",
    ("v1", "v1beta2", "v1alpha3"),
    DeviceTaintRule,
    optional=True,
)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "CustomResourceDefinition",
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    ("v1",),
    PartialObject,
    optional=True,
)

REQUIRED: tuple[Kind[KubernetesObject], ...] = (
    NODE,
    NAMESPACE,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    RESOURCE_CLAIM,
    POD_DISRUPTION_BUDGET,
    POD,
)
OPTIONAL: tuple[Kind[KubernetesObject], ...] = (WORKLOAD, POD_GROUP, DEVICE_TAINT_RULE)
