"""What can still be read from an object that its struct could not be decoded from.

An unreadable claim must not free the devices that it holds, an unreadable pod must not free its node's.
"""

from __future__ import annotations

from typing import Any

import msgspec

from extender.api.core import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from extender.api.meta import ObjectMeta
from extender.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from extender.inventory.requests import is_extended_resource


def _dig(document: object, *path: str) -> object:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _meta(document: object) -> ObjectMeta:
    meta = _dig(document, "metadata")
    return ObjectMeta(
        name=_text(_dig(meta, "name")), namespace=_text(_dig(meta, "namespace")), uid=_text(_dig(meta, "uid"))
    )


def _document(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def salvage_claim(raw: bytes, former: ResourceClaim | None = None) -> ResourceClaim | None:
    """Name, owners and allocated devices; None when not even a name can be read.

    Doubtful shares count as whole. Where there is an allocation without a device that can be read, what
    `former`, the claim as it was last seen, held is held still.
    """
    document = _document(raw)
    meta = _meta(document)
    if not meta.name:
        return None
    results = [
        DeviceRequestAllocationResult(
            driver=_text(_dig(result, "driver")),
            pool=_text(_dig(result, "pool")),
            device=_text(_dig(result, "device")),
        )
        for result in _items(_dig(document, "status", "allocation", "devices", "results"))
        if isinstance(result, dict)
    ]
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results)) if results else None
    if allocation is None and _dig(document, "status", "allocation") is not None and former is not None:
        allocation = former.status.allocation
    return ResourceClaim(metadata=meta, status=ResourceClaimStatus(allocation=allocation))


def salvage_pod(raw: bytes) -> Pod | None:
    """Name, node, phase and the extended resources asked for; None when not even a UID can be read."""
    document = _document(raw)
    meta = _meta(document)
    if not meta.uid:
        return None
    return Pod(
        metadata=meta,
        spec=PodSpec(
            node_name=_text(_dig(document, "spec", "nodeName")),
            containers=_asking(_dig(document, "spec", "containers")),
            init_containers=_asking(_dig(document, "spec", "initContainers")),
        ),
        status=PodStatus(phase=_text(_dig(document, "status", "phase"))),
    )


def _asking(containers: object) -> list[Container]:
    return [
        Container(
            resources=ResourceRequirements(requests=asked),
            restart_policy=_text(_dig(container, "restartPolicy")) or None,
        )
        for container in _items(containers)
        if (asked := _whole_requests(_dig(container, "resources", "limits")))
    ]


def _whole_requests(limits: object) -> dict[str, str | int | float]:
    if not isinstance(limits, dict):
        return {}
    return {
        name: value
        for name, value in limits.items()
        if is_extended_resource(name)
        and (type(value) is int or (isinstance(value, str) and value.isdecimal()))
    }
