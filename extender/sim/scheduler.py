"""A small kube-scheduler: one pod a cycle, in-tree filters for resources and devices, the extender over HTTP.

Plays the scheduler's part in demo and load: what is in-tree there is asked of our own allocator here, so this
proves the wire and the flow, never parity. Parity is proved against the real kube-scheduler in the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import httpx
import msgspec

from extender.allocator import (
    AllocatedState,
    Allocation,
    Features,
    SelectorEvaluator,
    SliceIndex,
    allocate,
    gather_pools,
)
from extender.api.core import Node, Pod
from extender.api.extender import ExtenderArgs, ExtenderFilterResult, HostPriority
from extender.api.resource import AllocationResult, DeviceClass, ResourceClaim
from extender.inventory.pods import counted_requests
from extender.inventory.requests import quantity_milli
from extender.sim.memory import MemoryApi

_STEPS = 100_000
_EXPLAINED = 1000  # nodes, the most that the API describes at once


class _ExplainedNode(msgspec.Struct, frozen=True):
    """What the read API says of one node, as far as it is used here."""

    verdict: str = ""
    reason: str = ""
    unpredicted: str = ""


class _Explanation(msgspec.Struct, frozen=True):
    """The answer of `POST /api/v1/explain`."""

    nodes: list[_ExplainedNode]


@dataclass(frozen=True, slots=True)
class Placement:
    """What became of a pod: its node and devices, or why there is none."""

    pod: str
    node: str = ""
    devices: tuple[str, ...] = ()
    score: int | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    offered: int = 0
    explained: Mapping[str, int] = field(default_factory=dict)
    """For a pod without a node: what Berth says of the nodes, with how many it says it of."""


class SmallScheduler:
    """Schedules pods of `api`, asking the extender at `http`; runs on the loop that the API is on."""

    def __init__(
        self, api: MemoryApi, http: httpx.AsyncClient, evaluator: SelectorEvaluator, features: Features
    ) -> None:
        self._api = api
        self._http = http
        self._evaluator = evaluator
        self._features = features
        self._filter = msgspec.json.Decoder(ExtenderFilterResult)
        self._priorities = msgspec.json.Decoder(list[HostPriority])
        self._explanation = msgspec.json.Decoder(_Explanation)

    async def schedule(self, pod: Pod) -> Placement:
        """Run one cycle for a pod that exists in the API."""
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        allocations, reasons = self._feasible(pod)
        if not allocations:
            return Placement(name, reasons=reasons, explained=await self._explained(pod))
        offered = list(allocations)
        answer = self._filter.decode(await self._post("filter", pod, offered))
        if answer.error:
            return Placement(name, reasons={"": answer.error}, offered=len(offered))
        reasons.update(answer.failed_nodes)
        reasons.update(answer.failed_and_unresolvable_nodes)
        left = answer.node_names or []
        if not left:
            explained = await self._explained(pod)
            return Placement(name, reasons=reasons, offered=len(offered), explained=explained)
        node, score = left[0], None
        if len(left) > 1:
            ranked = self._priorities.decode(await self._post("prioritize", pod, left))
            best = max(ranked, key=lambda entry: entry.score)
            node, score = best.host, best.score
        devices = self._reserve(pod, allocations[node])
        return Placement(name, node, devices, score, reasons, len(offered))

    async def _explained(self, pod: Pod) -> Mapping[str, int]:
        """Berth's own words for a pod without a node, by how many nodes have them."""
        meta = pod.metadata
        asked = {"namespace": meta.namespace, "name": meta.name, "limit": _EXPLAINED}
        reply = await self._http.post("/api/v1/explain", json=asked)
        reply.raise_for_status()
        said = Counter(
            node.reason or (f"unpredicted {node.unpredicted}" if node.unpredicted else node.verdict)
            for node in self._explanation.decode(reply.content).nodes
        )
        return dict(said.most_common())

    async def _post(self, verb: str, pod: Pod, names: Sequence[str]) -> bytes:
        body = msgspec.json.encode(ExtenderArgs(pod=pod, node_names=list(names)))
        reply = await self._http.post(
            f"/extender/{verb}", content=body, headers={"content-type": "application/json"}
        )
        reply.raise_for_status()
        return reply.content

    def _feasible(self, pod: Pod) -> tuple[dict[str, Sequence[AllocationResult]], dict[str, str]]:
        """Allocations by node for the nodes that pass the in-tree filters, and reasons for the others."""
        claims = self._claims(pod)
        open_claims = [claim for claim in claims if claim.status.allocation is None]
        slices = SliceIndex(self._api.all("ResourceSlice"))
        classes: dict[str, DeviceClass] = {c.metadata.name: c for c in self._api.all("DeviceClass")}
        held = [
            c.status.allocation for c in self._api.all("ResourceClaim") if c.status.allocation is not None
        ]
        in_use = AllocatedState.of(held)
        passed: dict[str, Sequence[AllocationResult]] = {}
        reasons: dict[str, str] = {}
        for node in self._api.all("Node"):
            name = node.metadata.name
            lacking = self._lacking(pod, node)
            if lacking:
                reasons[name] = f"Insufficient {lacking}"
                continue
            if not all(_on_node(claim, name) for claim in claims):
                reasons[name] = "a claim is allocated on another node"
                continue
            pools = gather_pools(node, slices, self._features)
            outcome = allocate(
                node, open_claims, classes, pools, in_use, self._features, _STEPS, evaluator=self._evaluator
            )
            if isinstance(outcome, Allocation):
                passed[name] = outcome.results
            else:
                reasons[name] = "cannot allocate all claims"
        return passed, reasons

    def _lacking(self, pod: Pod, node: Node) -> str:
        """The first resource of which the node has too little left, "" when there is none."""
        wanted = counted_requests(pod)
        used: dict[str, int] = {}
        for other in self._api.all("Pod"):
            if other.spec.node_name == node.metadata.name:
                for resource, amount in counted_requests(other).items():
                    used[resource] = used.get(resource, 0) + amount
        offered = node.status.allocatable or {}
        for resource, amount in wanted.items():
            if amount + used.get(resource, 0) > quantity_milli(offered.get(resource, 0)):
                return resource
        return ""

    def _claims(self, pod: Pod) -> list[ResourceClaim]:
        made = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
        names = [
            entry.resource_claim_name or made.get(entry.name) or ""
            for entry in pod.spec.resource_claims or ()
        ]
        return [self._api.get("ResourceClaim", pod.metadata.namespace, name) for name in names]

    def _reserve(self, pod: Pod, allocations: Sequence[AllocationResult]) -> tuple[str, ...]:
        """Write the allocations, and name all devices of the pod."""
        left = list(allocations)
        devices: list[str] = []
        for claim in self._claims(pod):
            allocation = claim.status.allocation or left.pop(0)
            stored = self._api.allocate(claim.metadata.namespace, claim.metadata.name, allocation, pod)
            written = stored.status.allocation
            devices.extend(
                f"{result.pool}/{result.device}"
                for result in (written.devices.results if written is not None else None) or ()
            )
        return tuple(devices)


def _on_node(claim: ResourceClaim, node: str) -> bool:
    """Whether an allocated claim can be used on the node, as far as its selector names nodes."""
    allocation = claim.status.allocation
    if allocation is None or allocation.node_selector is None:
        return True
    return any(
        node in (requirement.values or ())
        for term in allocation.node_selector.node_selector_terms or ()
        for requirement in term.match_fields or ()
    )
