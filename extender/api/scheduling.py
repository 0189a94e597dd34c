"""scheduling.k8s.io: Workload and PodGroup of v1alpha1 (1.35) to v1beta1 (1.37) in one shape.

A field that a version does not have stays at its default.
"""

from __future__ import annotations

from extender.api.base import Wire
from extender.api.meta import Condition, ObjectMeta


class GangSchedulingPolicy(Wire, frozen=True, gc=False):
    """All or nothing: at least `min_count` pods must fit at once."""

    min_count: int = 0


class BasicSchedulingPolicy(Wire, frozen=True, gc=False):
    """Pods are scheduled one by one."""


class SchedulingPolicy(Wire, frozen=True, gc=False):
    """Exactly one of the two."""

    gang: GangSchedulingPolicy | None = None
    basic: BasicSchedulingPolicy | None = None


class TopologyConstraint(Wire, frozen=True, gc=False):
    """Pods of the group go to nodes with one value of this label."""

    key: str = ""


class SchedulingConstraints(Wire, frozen=True, gc=False):
    """Topology that the group must share."""

    topology: list[TopologyConstraint] | None = None


class PodGroupTemplate(Wire, frozen=True, gc=False):
    """A kind of group in a Workload: `policy` in v1alpha1, `schedulingPolicy` since v1alpha2."""

    name: str = ""
    policy: SchedulingPolicy | None = None
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None


class WorkloadSpec(Wire, frozen=True, gc=False):
    """Groups: `podGroups` in v1alpha1, `podGroupTemplates` since v1alpha2."""

    pod_groups: list[PodGroupTemplate] | None = None
    pod_group_templates: list[PodGroupTemplate] | None = None


class Workload(Wire, frozen=True, gc=False):
    """scheduling.k8s.io Workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class WorkloadTemplateReference(Wire, frozen=True, gc=False):
    """The template that a group was made from; its field is `podGroupTemplateName` in v1alpha2."""

    workload_name: str = ""
    pod_group_template_name: str = ""
    template_name: str = ""


class PodGroupTemplateReference(Wire, frozen=True, gc=False):
    """v1alpha2's wrapper of the same."""

    workload: WorkloadTemplateReference | None = None


class PodGroupResourceClaim(Wire, frozen=True, gc=False):
    """A claim of the group: by name, or from a template (KEP-5729)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(Wire, frozen=True, gc=False):
    """How the group is scheduled; `disruptionMode`, text in v1alpha2 and an object later, is not read."""

    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    pod_group_template_ref: PodGroupTemplateReference | None = None
    workload_ref: WorkloadTemplateReference | None = None
    parent_composite_pod_group_name: str | None = None
    resource_claims: list[PodGroupResourceClaim] | None = None
    priority: int | None = None
    priority_class_name: str = ""


class PodGroupResourceClaimStatus(Wire, frozen=True, gc=False):
    """The claim that was made for an entry of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Wire, frozen=True, gc=False):
    """Conditions: PodGroupScheduled (v1alpha2), PodGroupInitiallyScheduled (v1beta1)."""

    conditions: list[Condition] | None = None
    resource_claim_statuses: list[PodGroupResourceClaimStatus] | None = None


class PodGroup(Wire, frozen=True, gc=False):
    """scheduling.k8s.io PodGroup (since v1alpha2)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
