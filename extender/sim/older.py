"""Older resource.k8s.io shapes as v1 (conversion rules: pkg/apis/resource/v1beta1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EXACT = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
_FLAT = frozenset({"resource.k8s.io/v1beta1", "resource.k8s.io/v1alpha3"})


def to_v1(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document in v1 shape; v1 and v1beta2 (which has the same shape) come back as they are."""
    if document.get("apiVersion") not in _FLAT:
        return document
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    match document.get("kind"):
        case "ResourceSlice":
            return {**document, "spec": {**spec, "devices": [_device(d) for d in _list(spec.get("devices"))]}}
        case "ResourceClaim":
            return {**document, "spec": _claim(spec)}
        case "ResourceClaimTemplate":
            inner = spec.get("spec")
            return {**document, "spec": {**spec, "spec": _claim(inner) if isinstance(inner, dict) else inner}}
        case _:
            return document


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _device(device: Any) -> Any:
    """`basic` holds the body of the device; a bare quantity is a capacity's value."""
    if not isinstance(device, dict) or not isinstance(device.get("basic"), dict):
        return device
    body = {**device["basic"], "name": device.get("name")}
    capacity = body.get("capacity")
    if isinstance(capacity, dict):
        body["capacity"] = {
            name: value if isinstance(value, dict) else {"value": value} for name, value in capacity.items()
        }
    return body


def _claim(spec: dict[str, Any]) -> dict[str, Any]:
    devices = spec.get("devices")
    if not isinstance(devices, dict):
        return spec
    return {**spec, "devices": {**devices, "requests": [_request(r) for r in _list(devices.get("requests"))]}}


def _request(request: Any) -> Any:
    """A flat request becomes `exactly`; one with alternatives stays."""
    if not isinstance(request, dict) or request.get("firstAvailable") or "exactly" in request:
        return request
    exact = {name: request[name] for name in _EXACT if name in request}
    return {**{k: v for k, v in request.items() if k not in _EXACT}, "exactly": exact}
