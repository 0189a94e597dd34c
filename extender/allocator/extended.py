"""Extended resources backed by DRA (KEP-5004): the claim that the scheduler makes up for a pod on a node.

Owns how requests of containers become requests of the in-memory claim, and which container uses which of
them. Source: the scheduler's dynamicresources/extendeddynamicresources.go (1.37). Never: allocating it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from extender.api.core import Container, ContainerExtendedResourceRequest, Node, Pod
from extender.api.meta import ObjectMeta, OwnerReference
from extender.api.resource import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from extender.inventory.requests import is_extended_resource, pod_requests

from .quantities import quantity_of

CLAIM_NAME: Final = "<extended-resources>"
"""Name of the claim while it exists in memory only; no object can be called so."""
CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"


class ClassResolver(Protocol):
    """Finds the class behind an extended resource (`extender.inventory` Classes)."""

    def for_extended_resource(self, resource: str) -> str | None:
        """Name of the class, None when none stands for the resource."""


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """The claim for one node, and which of its requests backs which resource of which container."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


@dataclass(frozen=True, slots=True)
class CannotFit:
    """A resource that the node does not offer and no class stands for."""

    resource: str

    def __str__(self) -> str:
        return f"cannot fit resource {self.resource}"


def extended_claim(pod: Pod, node: Node, classes: ClassResolver) -> ExtendedClaim | CannotFit | None:
    """Return the claim that the pod needs on the node, None when no resource of it comes by DRA there.

    A resource which the node's device plugin offers (allocatable above 0) is left to the plugin.
    """
    wanted = [
        name
        for name, amount in sorted(pod_requests(pod.spec).items())
        if amount and is_extended_resource(name)
    ]
    class_of = {name: found for name in wanted if (found := classes.for_extended_resource(name)) is not None}
    if not class_of:
        return None
    allocatable = node.status.allocatable or {}
    by_claim = {
        name: class_name
        for name, class_name in class_of.items()
        if not quantity_of(allocatable.get(name, 0)).value()
    }
    for name in wanted:
        if name not in by_claim and name not in allocatable:
            return CannotFit(name)
    if not by_claim:
        return None
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for name, class_name in by_claim.items():
        _Resource(pod, name, class_name).add_to(requests, mappings)
    requests.sort(key=lambda request: request.name)
    meta = ObjectMeta(
        name=CLAIM_NAME,
        namespace=pod.metadata.namespace,
        annotations={CLAIM_ANNOTATION: "true"},
        owner_references=[
            OwnerReference("Pod", pod.metadata.name, pod.metadata.uid, api_version="v1", controller=True)
        ],
    )
    claim = ResourceClaim(meta, ResourceClaimSpec(DeviceClaim(requests=requests or None)))
    return ExtendedClaim(claim, tuple(mappings))


@dataclass(frozen=True, slots=True)
class _Request:
    name: str
    count: int


class _Resource:
    """One resource of a pod: requests of long-lived containers, and what init containers need beyond them."""

    def __init__(self, pod: Pod, name: str, class_name: str) -> None:
        inits = list(pod.spec.init_containers or ())
        self._containers = [*inits, *(pod.spec.containers or ())]
        self._short_lived = [i for i, init in enumerate(inits) if init.restart_policy != "Always"]
        self._name = name
        self._class_name = class_name

    def add_to(self, requests: list[DeviceRequest], mappings: list[ContainerExtendedResourceRequest]) -> None:
        """Append the requests and mappings of this resource.

        Init containers run alone: they first use what later containers hold anyway, and only the one that
        needs most beyond that gets a request of its own, which the others share.
        """
        kept: list[_Request | None] = [None] * len(self._containers)
        for index, container in enumerate(self._containers):
            if index not in self._short_lived:
                kept[index] = self._request(index, container, (), mappings)
        largest: _Request | None = None
        own: set[str] = set()
        init_mappings: list[ContainerExtendedResourceRequest] = []
        for index in self._short_lived:
            request = self._request(index, self._containers[index], kept[index:], init_mappings)
            if request is not None:
                own.add(request.name)
                if largest is None or largest.count < request.count:
                    largest = request
        if largest is not None:
            init_mappings = [
                msgspec.structs.replace(mapping, request_name=largest.name)
                if mapping.request_name in own
                else mapping
                for mapping in init_mappings
            ]
        mappings.extend(init_mappings)
        requests.extend(
            DeviceRequest(
                request.name,
                ExactDeviceRequest(
                    device_class_name=self._class_name, allocation_mode="ExactCount", count=request.count
                ),
            )
            for request in (largest, *kept)
            if request is not None
        )

    def _request(
        self,
        index: int,
        container: Container,
        reusable: Sequence[_Request | None],
        mappings: list[ContainerExtendedResourceRequest],
    ) -> _Request | None:
        """What one container needs beyond `reusable`; its mappings are appended."""
        wanted = (container.resources.requests if container.resources else None) or {}
        count, whole = quantity_of(wanted.get(self._name, 0)).as_int64()
        if not whole or count == 0:
            return None
        reused = 0
        for request in reusable:
            if request is not None:
                reused += request.count
                mappings.append(ContainerExtendedResourceRequest(container.name, self._name, request.name))
                if reused >= count:
                    return None
        name = f"container-{index}-request-{sorted(wanted).index(self._name)}"
        mappings.append(ContainerExtendedResourceRequest(container.name, self._name, name))
        return _Request(name, count - reused)
