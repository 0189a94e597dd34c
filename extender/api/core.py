"""core/v1: pods, nodes, namespaces, trimmed to the fields in use."""

from __future__ import annotations

import msgspec

from extender.api.base import Wire
from extender.api.meta import Condition, ObjectMeta, Requirement


class ResourceClaimReference(Wire, frozen=True, gc=False):
    """A container's use of one of the pod's claims; `request` narrows it to one request."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire, frozen=True, gc=False):
    """Requests and limits by resource name; quantities as text or JSON numbers."""

    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None
    claims: list[ResourceClaimReference] | None = None


class ContainerPort(Wire, frozen=True, gc=False):
    """A port of a container; only host ports matter to placement."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(Wire, frozen=True, gc=False):
    """A container or init container; `restart_policy` "Always" makes the latter a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    ports: list[ContainerPort] | None = None


class PodResourceClaim(Wire, frozen=True, gc=False):
    """An entry of spec.resourceClaims: a claim by name, or a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Wire, frozen=True, gc=False):
    """A gate which keeps the pod out of the scheduling queue."""

    name: str = ""


class PodSchedulingGroup(Wire, frozen=True, gc=False):
    """spec.schedulingGroup (1.36+): the PodGroup that the pod belongs to."""

    pod_group_name: str = ""


class WorkloadReference(Wire, frozen=True, gc=False):
    """spec.workloadRef (1.35): workload, pod group and replica key."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class Toleration(Wire, frozen=True, gc=False):
    """A toleration of a node taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(Wire, frozen=True, gc=False):
    """The part of a pod's spec that placement reads."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: ResourceRequirements | None = None
    resource_claims: list[PodResourceClaim] | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    tolerations: list[Toleration] | None = None
    node_selector: dict[str, str] | None = None
    host_network: bool = False


class PodResourceClaimStatus(Wire, frozen=True, gc=False):
    """The claim that was made for an entry of spec.resourceClaims; a nil name means none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Wire, frozen=True, gc=False):
    """Which request of the special claim backs an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Wire, frozen=True, gc=False):
    """The claim that the scheduler made for DRA-backed extended resources."""

    resource_claim_name: str = ""
    request_mappings: list[ContainerExtendedResourceRequest] | None = None


class PodStatus(Wire, frozen=True, gc=False):
    """The part of a pod's status that placement reads."""

    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    conditions: list[Condition] | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(Wire, frozen=True, gc=False):
    """core/v1 Pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Wire, frozen=True, gc=False):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True, gc=False):
    """Taints and cordon."""

    taints: list[Taint] | None = None
    unschedulable: bool = False


class NodeStatus(Wire, frozen=True, gc=False):
    """Allocatable resources, conditions and declared features."""

    allocatable: dict[str, str | int | float] | None = None
    conditions: list[Condition] | None = None
    declared_features: list[str] | None = None


class Node(Wire, frozen=True, gc=False):
    """core/v1 Node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Wire, frozen=True, gc=False):
    """core/v1 Namespace: its labels matter."""

    metadata: ObjectMeta = ObjectMeta()


class NodeSelectorTerm(Wire, frozen=True, gc=False):
    """All requirements of a term must hold."""

    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Wire, frozen=True, gc=False):
    """Terms are ORed."""

    node_selector_terms: list[NodeSelectorTerm] | None = None
