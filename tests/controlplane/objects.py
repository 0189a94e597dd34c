"""Builds the Kubernetes objects that the tests put into a real API server, as plain dicts.

Owns their shape (the names and attributes that NVIDIA's DRA driver publishes). It never talks to an API
server, except `register_node` and `register_gpu_node`, which do what a kubelet and a driver do.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.controlplane.client import ApiClient

Object = dict[str, Any]

DRIVER = "gpu.nvidia.com"
EXTENDED_RESOURCE = "nvidia.com/gpu"
_IMAGE = "pause:3.10"  # never pulled: no kubelet runs
_DRA = "resource.k8s.io/v1"
_FACTS = {  # of the products that tests use: architecture, compute capability, memory
    "NVIDIA H100 80GB HBM3": ("Hopper", "9.0.0", "81559Mi"),
    "NVIDIA A100-SXM4-80GB": ("Ampere", "8.0.0", "81920Mi"),
    "NVIDIA L4": ("Ada Lovelace", "8.9.0", "23034Mi"),
    "Tesla T4": ("Turing", "7.5.0", "15360Mi"),
}
H100, A100, L4, T4 = _FACTS


def cpu_node(
    name: str,
    *,
    cpu: str = "64",
    memory: str = "256Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
    resources: Mapping[str, str] | None = None,
) -> Object:
    """Return a Node without accelerators; ``resources`` are added to its allocatable as they are."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
        },
        "spec": {"taints": list(taints)},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is ready"}
            ],
        },
    }


def gpu_node(
    name: str,
    *,
    cpu: str = "192",
    memory: str = "2Ti",
    product: str = H100,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
) -> Object:
    """Return a Node whose GPUs a DRA driver publishes: its devices are in `resource_slice`, not in here."""
    marks = {"nvidia.com/gpu.product": product.replace(" ", "-"), "nvidia.com/gpu.present": "true"}
    return cpu_node(name, cpu=cpu, memory=memory, labels={**marks, **(labels or {})}, taints=taints)


def device_plugin_node(
    name: str,
    *,
    gpus: int = 8,
    cpu: str = "192",
    memory: str = "2Ti",
    product: str = H100,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
) -> Object:
    """Return a Node whose GPUs a device plugin announces as a count of `EXTENDED_RESOURCE`."""
    marks = {"nvidia.com/gpu.product": product.replace(" ", "-"), "nvidia.com/gpu.present": "true"}
    return cpu_node(
        name,
        cpu=cpu,
        memory=memory,
        labels={**marks, **(labels or {})},
        taints=taints,
        resources={EXTENDED_RESOURCE: str(gpus)},
    )


def register_node(client: ApiClient, node: Object) -> Object:
    """Create the Node and bring it to the state that a kubelet would: Ready, with only its own taints.

    The API server taints every new Node not-ready, and the controller that lifts the taint needs kubelets.

    Returns:
        The Node as stored.
    """
    name = node["metadata"]["name"]
    client.create(node)
    client.patch("v1", "Node", name, {"spec": {"taints": node["spec"]["taints"] or None}})
    return client.patch("v1", "Node", name, {"status": node["status"]}, subresource="status")


def register_gpu_node(
    client: ApiClient,
    name: str,
    *,
    gpus: int = 8,
    product: str = H100,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """Register a `gpu_node` and publish its `resource_slice`.

    Returns:
        The Node as stored.
    """
    node = register_node(client, gpu_node(name, product=product, labels=labels))
    client.create(resource_slice(name, gpus=gpus, product=product))
    return node


def gpu_device(node: str, index: int, product: str = H100) -> Object:
    """Return one device as NVIDIA's driver publishes it; its uuid follows from node and index.

    Two GPUs share a PCIe root, four share a NUMA node.
    """
    architecture, capability, memory = _FACTS[product]
    numa, root = index // 4, index // 2
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node}/{index}')}"},
            "productName": {"string": product},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": architecture},
            "cudaComputeCapability": {"version": capability},
            "driverVersion": {"version": "580.126.20"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci{root:04x}:00"},
            "resource.kubernetes.io/pciBusID": {"string": f"{root:04x}:{index % 2 + 1:02x}:00.0"},
            "resource.kubernetes.io/numaNode": {"int": numa},
        },
        "capacity": {"memory": {"value": memory}},
    }


def resource_slice(
    node: str,
    *,
    gpus: int = 8,
    product: str = H100,
    generation: int = 1,
    devices: Sequence[Object] | None = None,
) -> Object:
    """Return the one ResourceSlice of the node's pool, with ``devices`` in place of made ones if given."""
    made = [gpu_device(node, index, product) for index in range(gpus)]
    return {
        "apiVersion": _DRA,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": made if devices is None else list(devices),
        },
    }


def device_class(
    name: str = DRIVER,
    *,
    extended_resource: str | None = EXTENDED_RESOURCE,
    expression: str = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'",
) -> Object:
    """Return NVIDIA's class of whole GPUs, which also backs `EXTENDED_RESOURCE`."""
    spec: Object = {"selectors": [{"cel": {"expression": expression}}]}
    if extended_resource is not None:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": _DRA, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def device_request(
    count: int = 1,
    *,
    name: str = "gpu",
    selectors: Sequence[str] = (),
    class_name: str = DRIVER,
) -> Object:
    """Return one exact request; ``selectors`` are CEL expressions that all must hold."""
    exactly: Object = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return {"name": name, "exactly": exactly}


def claim(
    name: str,
    count: int = 1,
    *,
    namespace: str,
    selectors: Sequence[str] = (),
    class_name: str = DRIVER,
    devices: Object | None = None,
) -> Object:
    """Return a ResourceClaim of ``count`` devices; ``devices`` replaces the devices part of its spec."""
    spec = devices or {"requests": [device_request(count, selectors=selectors, class_name=class_name)]}
    return {
        "apiVersion": _DRA,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": spec},
    }


def claim_template(
    name: str,
    count: int = 1,
    *,
    namespace: str,
    selectors: Sequence[str] = (),
    class_name: str = DRIVER,
    devices: Object | None = None,
) -> Object:
    """Return a ResourceClaimTemplate; its parameters are those of `claim`."""
    model = claim(
        name, count, namespace=namespace, selectors=selectors, class_name=class_name, devices=devices
    )
    return {**model, "kind": "ResourceClaimTemplate", "spec": {"spec": model["spec"]}}


def pod(
    name: str,
    *,
    namespace: str,
    cpu: str = "100m",
    memory: str = "64Mi",
    claims: Sequence[str] = (),
    templates: Sequence[str] = (),
    gpus: int = 0,
    scheduler: str = "default-scheduler",
    gates: Sequence[str] = (),
    priority_class: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Object:
    """Return a Pod that satisfies the ``restricted`` Pod Security level.

    Args:
        name: Its name.
        namespace: Its namespace.
        cpu: Requested of the node, as is ``memory``.
        memory: See ``cpu``.
        claims: Names of existing ResourceClaims that it uses.
        templates: Names of ResourceClaimTemplates, from each of which it gets a claim of its own.
        gpus: Count of `EXTENDED_RESOURCE`: a device plugin's, or DRA's where a class backs it.
        scheduler: Its schedulerName.
        gates: Names of its scheduling gates.
        priority_class: Its priorityClassName.
        labels: Its labels.
        annotations: Its annotations.
        spec: Further fields of its spec, over the ones made here.
    """
    used = [{"name": f"claim-{index}", "resourceClaimName": each} for index, each in enumerate(claims)]
    used += [
        {"name": f"template-{index}", "resourceClaimTemplateName": each}
        for index, each in enumerate(templates)
    ]
    resources: Object = {"requests": {"cpu": cpu, "memory": memory}}
    if gpus:
        resources["limits"] = {EXTENDED_RESOURCE: str(gpus)}
    if used:
        resources["claims"] = [{"name": each["name"]} for each in used]
    body: Object = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "main",
                "image": _IMAGE,
                "resources": resources,
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    }
    if used:
        body["resourceClaims"] = used
    if gates:
        body["schedulingGates"] = [{"name": each} for each in gates]
    if priority_class is not None:
        body["priorityClassName"] = priority_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {**body, **(spec or {})},
    }
