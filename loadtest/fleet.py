"""The fleet that the load test's server holds, and the pods that its users ask about.

Owns their shape. It writes one YAML file and talks to nobody. Nodes of one model publish the same devices, so
the file names each list of devices once (a YAML anchor) and 5,000 nodes stay a few megabytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DRIVER = "gpu.nvidia.com"
CLASS = "gpu.nvidia.com"
NAMESPACE = "load"
DEVICES = 8
CLAIMS = 400
_MODELS = 20
_PLUGIN_EVERY = 10  # one node in ten announces its devices by a device plugin
_EXPRESSION = f"device.driver == '{DRIVER}'"


@dataclass(frozen=True, slots=True)
class KindOfPod:
    """One kind of pod that users ask about; ``share`` is its weight among all asked about."""

    name: str
    share: int
    count: int = 0
    selector: str = ""


KINDS = (
    KindOfPod("claim-1", 40, 1),
    KindOfPod("claim-8", 15, 8),
    KindOfPod("claim-selector", 20, 2, f"device.attributes['{DRIVER}'].productName.startsWith('NVIDIA H10')"),
    KindOfPod("plugin-1", 10),
    KindOfPod("cpu", 15),
)


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"gpu-node-{number:05d}.cluster.example"


def write(path: Path, nodes: int) -> None:
    """Write the fleet: ``nodes`` nodes of 20 models, half of the devices of every second DRA node taken."""
    with path.open("w") as out:
        for document in _documents(nodes):
            out.write(f"---\n{document}\n")


def pod(kind: KindOfPod, number: int) -> dict[str, Any]:
    """Return a pending Pod as kube-scheduler sends it; claims are those of the fleet, by number."""
    requests = {"cpu": "1", "memory": "1Gi"}
    if kind.name == "plugin-1":
        requests["nvidia.com/gpu"] = "1"
    container: dict[str, Any] = {
        "name": "main",
        "image": "registry.example/model:1",
        "resources": {"requests": requests, "limits": dict(requests)},
    }
    spec: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "containers": [container],
        "priority": 0,
        "restartPolicy": "Always",
        "tolerations": [{"operator": "Exists"}],
    }
    if kind.count:
        container["resources"]["claims"] = [{"name": "gpu"}]
        claim = f"{kind.name}-{number % CLAIMS}"
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    return {
        "metadata": {
            "name": f"{kind.name}-{number}",
            "namespace": NAMESPACE,
            "uid": f"{kind.name}-{number}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def _documents(nodes: int) -> Iterator[str]:
    yield json.dumps(_named("v1", "Namespace", NAMESPACE))
    yield json.dumps(
        _named("resource.k8s.io/v1", "DeviceClass", CLASS, spec={"selectors": [_cel(_EXPRESSION)]})
    )
    yield _slices(nodes)
    for number in range(nodes):
        plugin = number % _PLUGIN_EVERY == 0
        yield json.dumps(_node(number, plugin=plugin))
        if not plugin and number % 2:
            yield json.dumps(_taken(number))
    for kind in KINDS:
        for number in range(CLAIMS if kind.count else 0):
            yield json.dumps(_wanted(kind, number))


def _named(api_version: str, kind: str, name: str, namespace: str = "", **parts: Any) -> dict[str, Any]:
    meta = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "1"}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}


def _cel(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def _slices(nodes: int) -> str:
    """All slices as one List, in YAML for its anchors; every value in it is JSON."""
    lines = ["apiVersion: v1", "kind: List", "items:"]
    seen: set[int] = set()
    for number in range(nodes):
        if number % _PLUGIN_EVERY == 0:
            continue
        name, model = node_name(number), number % _MODELS
        devices = f"*model{model}"
        if model not in seen:
            seen.add(model)
            devices = f"&model{model} {json.dumps([_device(index, model) for index in range(DEVICES)])}"
        meta = {"name": f"{name}-{DRIVER}", "uid": f"slice-{number}", "resourceVersion": "1"}
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        lines += [
            "- apiVersion: resource.k8s.io/v1",
            "  kind: ResourceSlice",
            f"  metadata: {json.dumps(meta)}",
            "  spec:",
            f"    driver: {DRIVER}",
            f"    nodeName: {name}",
            f"    pool: {json.dumps(pool)}",
            f"    devices: {devices}",
        ]
    return "\n".join(lines)


def _device(index: int, model: int) -> dict[str, Any]:
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "productName": {"string": f"NVIDIA H{100 + model} 80GB HBM3"},
            "architecture": {"string": "Hopper"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index // 2:02x}"},
        },
        "capacity": {"memory": {"value": f"{80 + model}Gi"}},
    }


def _node(number: int, *, plugin: bool) -> dict[str, Any]:
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110"}
    if plugin:
        amounts["nvidia.com/gpu"] = str(DEVICES)
    node = _named("v1", "Node", node_name(number), spec={})
    node["metadata"]["labels"] = {"kubernetes.io/hostname": node_name(number)}
    node["status"] = {"allocatable": amounts, "capacity": amounts}
    return node


def _taken(number: int) -> dict[str, Any]:
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node_name(number), "device": f"gpu-{index}"}
        for index in range(DEVICES // 2)
    ]
    spec = _claim_spec(DEVICES // 2, "")
    status = {"allocation": {"devices": {"results": results}}}
    return _named(
        "resource.k8s.io/v1", "ResourceClaim", f"taken-{number}", NAMESPACE, spec=spec, status=status
    )


def _wanted(kind: KindOfPod, number: int) -> dict[str, Any]:
    spec = _claim_spec(kind.count, kind.selector)
    return _named("resource.k8s.io/v1", "ResourceClaim", f"{kind.name}-{number}", NAMESPACE, spec=spec)


def _claim_spec(count: int, selector: str) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count}
    if selector:
        exactly["selectors"] = [_cel(selector)]
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
