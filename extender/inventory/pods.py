"""Pods: what each one asks for, where it is bound, and what its status says of scheduling.

Counting follows kube-scheduler's informer: a pod counts on its node until it is gone, Succeeded or Failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.api.core import Pod
from extender.api.meta import Condition
from extender.inventory.nodes import NodeTable
from extender.inventory.requests import pod_requests
from extender.inventory.sharedmap import SharedMap
from extender.model.ids import ObjectKey

TERMINAL = frozenset({"Succeeded", "Failed"})
_ONE_POD = 1000  # thousandths


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod as last seen; `counts` are the amounts (thousandths) held on `node` while it is bound there."""

    pod: Pod
    node: str
    counts: Mapping[str, int]

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.pod.metadata.namespace, self.pod.metadata.name)

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.pod.metadata.uid


class PodTable:
    """Pods by UID; the ledger is its only writer."""

    def __init__(self, nodes: NodeTable) -> None:
        self.by_uid: SharedMap[str, PodRecord] = SharedMap()
        self.uid_of: SharedMap[ObjectKey, str] = SharedMap()
        self._nodes = nodes

    def upsert(self, pod: Pod) -> tuple[PodRecord | None, PodRecord]:
        """Add or update a pod; the record before and after."""
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        before = self.by_uid.get(pod.metadata.uid)
        node = "" if pod.status.phase in TERMINAL else pod.spec.node_name
        record = PodRecord(pod, node, counted_requests(pod) if node else {})
        if before is None or (before.node, before.counts) != (record.node, record.counts):
            if before is not None and before.node:
                self._nodes.use(before.node, before.counts, -1)
            if record.node:
                self._nodes.use(record.node, record.counts, 1)
        self.by_uid.set(pod.metadata.uid, record)
        self.uid_of.set(key, pod.metadata.uid)
        return before, record

    def delete(self, uid: str) -> PodRecord | None:
        """Forget a pod; its last record."""
        record = self.by_uid.pop(uid)
        if record is None:
            return None
        if record.node:
            self._nodes.use(record.node, record.counts, -1)
        if self.uid_of.get(record.key) == uid:
            self.uid_of.pop(record.key)
        return record


def counted_requests(pod: Pod) -> dict[str, int]:
    """What a bound pod takes from its node's allocatable, in thousandths, itself as one of `pods`.

    Extended resources that a claim backs (status.extendedResourceClaimStatus) are held by that claim instead.
    """
    counts = pod_requests(pod.spec)
    backed = pod.status.extended_resource_claim_status
    if backed is not None:
        for mapping in backed.request_mappings or ():
            counts.pop(mapping.resource_name, None)
    counts["pods"] = _ONE_POD
    return counts


def scheduled_condition(pod: Pod) -> Condition | None:
    """The PodScheduled condition."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled":
            return condition
    return None


def pod_claim_names(pod: Pod) -> list[str] | None:
    """Names of the pod's claims: direct, made from templates, and for extended resources.

    None while a claim from a template has not been made yet. An entry whose status has no name needs none.
    """
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    names = []
    for entry in pod.spec.resource_claims or ():
        if entry.resource_claim_name:
            names.append(entry.resource_claim_name)
        elif entry.name not in made:
            return None
        elif name := made[entry.name]:
            names.append(name)
    backed = pod.status.extended_resource_claim_status
    if backed is not None and backed.resource_claim_name:
        names.append(backed.resource_claim_name)
    return names
