"""What an API server fills in before it stores an object; who reads claims relies on it.

Source of the rules: SetDefaults_* of pkg/apis/resource/v1 and pkg/apis/core/v1. Never: validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from extender.api.core import Pod
from extender.api.resource import (
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)

NAMESPACED = frozenset({"Pod", "ResourceClaim", "ResourceClaimTemplate"})

_EXACT_COUNT = "ExactCount"

R = TypeVar("R", ExactDeviceRequest, DeviceSubRequest)


def defaulted(kind: str, obj: Any) -> Any:
    """The object as it would be stored: its namespace, a pod's scheduler, a request's mode and count."""
    if kind in NAMESPACED and not obj.metadata.namespace:
        obj = replace(obj, metadata=replace(obj.metadata, namespace="default"))
    if isinstance(obj, Pod) and not obj.spec.scheduler_name:
        obj = replace(obj, spec=replace(obj.spec, scheduler_name="default-scheduler"))
    elif isinstance(obj, ResourceClaim):
        obj = replace(obj, spec=_claim(obj.spec))
    elif isinstance(obj, ResourceClaimTemplate):
        obj = replace(obj, spec=replace(obj.spec, spec=_claim(obj.spec.spec)))
    return obj


def _claim(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = spec.devices.requests
    if not requests:
        return spec
    return replace(spec, devices=replace(spec.devices, requests=[_named(request) for request in requests]))


def _named(request: DeviceRequest) -> DeviceRequest:
    if request.exactly is not None:
        request = replace(request, exactly=_filled(request.exactly))
    if request.first_available:
        request = replace(request, first_available=[_filled(one) for one in request.first_available])
    return request


def _filled(request: R) -> R:
    """Mode ExactCount, count 1, and operator Equal of tolerations, where they are not given."""
    mode = request.allocation_mode or _EXACT_COUNT
    count = request.count or int(mode == _EXACT_COUNT)
    filled: R = replace(
        request, allocation_mode=mode, count=count, tolerations=_tolerations(request.tolerations)
    )
    return filled


def _tolerations(given: Sequence[DeviceToleration] | None) -> list[DeviceToleration] | None:
    if given is None:
        return None
    return [one if one.operator else replace(one, operator="Equal") for one in given]
