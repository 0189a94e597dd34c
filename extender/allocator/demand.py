"""What a pod asks for, resolved against a snapshot: claims in the scheduler's order, then extended resources.

Never: which devices answer it (see `predict`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.allocator.extended import ExtendedClaim, extended_claim
from extender.api.core import Node, NodeStatus, Pod
from extender.api.resource import ResourceClaim
from extender.inventory.requests import is_extended_resource, pod_requests
from extender.inventory.snapshot import Snapshot

_UNIT = 1000  # amounts are in thousandths


@dataclass(frozen=True, slots=True)
class Demand:
    """The devices that a pod asks for.

    `claims` have no allocation yet, `allocated` have one (it pins the node); `missing` names claims that the
    ledger has not seen. `extended` maps resource names to thousandths, as far as a node offers them or a
    class stands behind them; `backed` is the claim that kube-scheduler makes up for those with a class, on a
    node without a device plugin. `amounts` holds every effective request, also cpu and memory, in
    thousandths.
    """

    claims: tuple[ResourceClaim, ...]
    allocated: tuple[ResourceClaim, ...]
    missing: tuple[str, ...]
    extended: Mapping[str, int]
    backed: ResourceClaim | None
    amounts: Mapping[str, int]

    @property
    def all_claims(self) -> tuple[ResourceClaim, ...]:
        """Claims to be allocated on a node without a device plugin, in the scheduler's order."""
        return self.claims if self.backed is None else (*self.claims, self.backed)

    @property
    def asks_for_devices(self) -> bool:
        """Whether the pod asks for any device: by claim or by extended resource."""
        return bool(self.claims or self.allocated or self.missing or self.extended)


def demand_of(pod: Pod, snapshot: Snapshot) -> Demand:
    """Resolve the claims and extended resources of a pod.

    A template's claim is found through status.resourceClaimStatuses; an entry with no name there needs none
    (dra-cel: plugin dynamicresources, PreFilter).
    """
    claims: list[ResourceClaim] = []
    allocated: list[ResourceClaim] = []
    missing: list[str] = []
    if pod.spec.resource_claims:
        made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name
            if name is None and entry.name in made:
                name = made[entry.name]
                if name is None:
                    continue
            claim = snapshot.claim(pod.metadata.namespace, name) if name else None
            if claim is None:
                missing.append(name or entry.name)
            elif claim.status.allocation is None:
                claims.append(claim)
            else:
                allocated.append(claim)
    amounts = pod_requests(pod.spec)
    extended = {
        name: amount
        for name, amount in amounts.items()
        if amount
        and is_extended_resource(name)
        and (name in snapshot.nodes.allocatable or snapshot.classes.for_extended_resource(name) is not None)
    }
    backed = _backed(pod, extended, snapshot) if extended else None
    return Demand(tuple(claims), tuple(allocated), tuple(missing), extended, backed, amounts)


def _backed(pod: Pod, extended: Mapping[str, int], snapshot: Snapshot) -> ResourceClaim | None:
    """The claim for extended resources on a node whose device plugin offers only what no class stands for."""
    plugin_only = [name for name in extended if snapshot.classes.for_extended_resource(name) is None]
    node = Node(status=NodeStatus(allocatable=dict.fromkeys(plugin_only, "1")))
    made = extended_claim(pod, node, snapshot.classes)
    return made.claim if isinstance(made, ExtendedClaim) else None


def units(amount: int) -> int:
    """Whole units of an amount in thousandths, rounded up."""
    return -(-amount // _UNIT)
