"""What the scheduler would write: devices, configuration and node selector of each claim.

Owns the shape of AllocationResult, config merging included. Never: choosing devices. Share ids are derived
from the claim, the request and the device, so that the same plan written twice is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID, uuid5

from extender.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    QuantityText,
    ResourceClaim,
)

from .features import Features
from .nodeselector import allocation_selector
from .outcome import Abort
from .requests import ClaimPlan, RequestPlan
from .search import Picked

_SHARES: Final = UUID("5f0f6a3e-6d0b-5c62-9f3c-1d9f0c1c7a44")
"""Name space of derived share ids."""


def allocation_result(
    plan: ClaimPlan, picked: Sequence[Picked], selected: Sequence[int], node_name: str, features: Features
) -> AllocationResult:
    """Write one claim's allocation; raise Abort for a slice whose node selector has several terms."""
    chosen = [alternatives[index] for alternatives, index in zip(plan.requests, selected, strict=True)]
    results = [_device(plan.claim, index, pick, features) for index, pick in enumerate(picked)]
    config = _config(plan, chosen)
    try:
        selector = allocation_selector((pick.candidate.locality for pick in picked), node_name)
    except Abort as abort:
        name = plan.claim.metadata.name
        raise Abort(f"create NodeSelector for claim {name}: {abort.text}") from abort
    return AllocationResult(DeviceAllocationResult(results or None, config or None), selector)


def _device(
    claim: ResourceClaim, index: int, pick: Picked, features: Features
) -> DeviceRequestAllocationResult:
    request, candidate = pick.request, pick.candidate
    device, identity = candidate.device, candidate.id
    consumed: dict[str, QuantityText] | None = None
    share_id = None
    if pick.consumption is not None:
        consumed = {name: str(quantity) for name, quantity in pick.consumption.items()} or None
        meta = claim.metadata
        share_id = str(
            uuid5(_SHARES, f"{meta.uid}/{meta.namespace}/{meta.name}/{request.full_name}/{identity}/{index}")
        )
    with_conditions = features.device_binding_and_status
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=identity.driver,
        pool=identity.pool,
        device=identity.device,
        admin_access=True if request.admin else None,
        tolerations=list(request.tolerations) or None,
        binding_conditions=(device.binding_conditions or None) if with_conditions else None,
        binding_failure_conditions=(device.binding_failure_conditions or None) if with_conditions else None,
        share_id=share_id,
        consumed_capacity=consumed,
        skip_node_operations=(candidate.slice.spec.skip_node_operations or None)
        if features.needs_experimental
        else None,
    )


def _config(plan: ClaimPlan, chosen: Sequence[RequestPlan]) -> list[DeviceAllocationConfiguration]:
    """Merge configuration: each class once, then those of the claim which apply to a chosen request."""
    names = [request.full_name for request in chosen]
    parents = [request.parent or request.name for request in chosen]
    by_class: dict[str, tuple[RequestPlan, list[str]]] = {}
    for request, name in zip(chosen, names, strict=True):
        by_class.setdefault(request.device_class.metadata.name, (request, []))[1].append(name)
    merged = [
        ("FromClass", users, config.opaque)
        for request, users in by_class.values()
        for config in request.device_class.spec.config or ()
    ]
    for wire in plan.claim.spec.devices.config or ():
        wanted = wire.requests or []
        if not wanted or any(name in wanted for name in (*names, *parents)):
            merged.append(("FromClaim", wanted, wire.opaque))
    return [
        DeviceAllocationConfiguration(
            source,
            None if _covers_all(wanted, names, parents) else list(wanted),
            opaque,
        )
        for source, wanted, opaque in merged
    ]


def _covers_all(wanted: Sequence[str], names: Sequence[str], parents: Sequence[str]) -> bool:
    """Whether a configuration applies to every request, which an empty list says shorter."""
    return not wanted or all(
        parent in wanted or name in wanted for name, parent in zip(names, parents, strict=True)
    )
