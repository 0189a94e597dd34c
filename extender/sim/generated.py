"""A fleet of any size, made up: nodes, slices, claims and pods as wire structs.

For load tests and benches. 20 kinds of nodes by default, 8 devices each, half of them taken, every tenth node
full.
"""

from __future__ import annotations

from typing import Any

from extender.api.core import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodResourceClaim,
    PodSpec,
    ResourceRequirements,
)
from extender.api.meta import ObjectMeta
from extender.api.resource import (
    AllocationResult,
    CELDeviceSelector,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

DRIVER = "gpu.nvidia.com"
CLASS_EXPRESSION = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"


def node_name(number: int) -> str:
    """Name of a node, as long as real ones are."""
    return f"gpu-node-{number:05d}.cluster.example"


def device(node: int, number: int, kind: int) -> Device:
    """One of `kind` models; uuids differ, so do PCI roots within a node."""
    return Device(
        name=f"gpu-{number}",
        attributes={
            "type": DeviceAttribute(string="gpu"),
            "uuid": DeviceAttribute(string=f"GPU-{node:08x}-{number:04x}"),
            "productName": DeviceAttribute(string=f"NVIDIA H{100 + kind} 80GB HBM3"),
            "brand": DeviceAttribute(string="Nvidia"),
            "architecture": DeviceAttribute(string="Hopper"),
            "cudaComputeCapability": DeviceAttribute(version="9.0.0"),
            "driverVersion": DeviceAttribute(version="580.95.5"),
            "resource.kubernetes.io/pcieRoot": DeviceAttribute(string=f"pci0000:{number // 2:02x}"),
            "resource.kubernetes.io/numaNode": DeviceAttribute(int=number // 4),
        },
        capacity={"memory": DeviceCapacity(value=f"{80 + kind}Gi")},
    )


def gpu_slice(node: int, kind: int, devices: int = 8) -> ResourceSlice:
    """The slice of a node: one pool, named as the node."""
    name = node_name(node)
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{name}-{DRIVER}", uid=f"slice-{node}"),
        spec=ResourceSliceSpec(
            driver=DRIVER,
            pool=ResourcePool(name=name, generation=1, resource_slice_count=1),
            node_name=name,
            devices=[device(node, number, kind) for number in range(devices)],
        ),
    )


def gpu_node(number: int) -> Node:
    """A large node in one of three zones."""
    return Node(
        metadata=ObjectMeta(
            name=node_name(number),
            uid=f"node-{number}",
            labels={
                "kubernetes.io/hostname": node_name(number),
                "topology.kubernetes.io/zone": f"z{number % 3}",
            },
        ),
        status=NodeStatus(allocatable={"cpu": "128", "memory": "1Ti", "pods": "110"}),
    )


def gpu_class() -> DeviceClass:
    """The class that NVIDIA's driver installs."""
    return DeviceClass(
        metadata=ObjectMeta(name=DRIVER),
        spec=DeviceClassSpec(
            selectors=[DeviceSelector(cel=CELDeviceSelector(expression=CLASS_EXPRESSION))],
            extended_resource_name="nvidia.com/gpu",
        ),
    )


def claim(name: str, count: int = 1, taken: list[tuple[int, int]] | None = None) -> ResourceClaim:
    """A claim for `count` devices, allocated to the (node, device) pairs of `taken` when given."""
    allocation = None
    if taken is not None:
        allocation = AllocationResult(
            devices=DeviceAllocationResult(
                results=[
                    DeviceRequestAllocationResult(
                        request="gpu", driver=DRIVER, pool=node_name(node), device=f"gpu-{number}"
                    )
                    for node, number in taken
                ]
            )
        )
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"claim-{name}"),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=[
                    DeviceRequest(
                        name="gpu", exactly=ExactDeviceRequest(device_class_name=DRIVER, count=count)
                    )
                ]
            )
        ),
        status=ResourceClaimStatus(allocation=allocation),
    )


def pod(name: str, claim_name: str | None = None, node: str = "") -> Pod:
    """A small pod, with one claim when given."""
    claims = [PodResourceClaim(name="gpu", resource_claim_name=claim_name)] if claim_name else None
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"pod-{name}"),
        spec=PodSpec(
            node_name=node,
            scheduler_name="default-scheduler",
            containers=[
                Container(name="main", resources=ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"}))
            ],
            resource_claims=claims,
        ),
    )


def fleet(nodes: int, kinds: int = 20, devices: int = 8) -> dict[str, list[Any]]:
    """Objects by kind: `nodes` nodes, the first half of each one's devices taken, every tenth node full."""
    return {
        "DeviceClass": [gpu_class()],
        "Node": [gpu_node(n) for n in range(nodes)],
        "ResourceSlice": [gpu_slice(n, n % kinds, devices) for n in range(nodes)],
        "ResourceClaim": [
            claim(f"held-{n}", taken=[(n, d) for d in range(devices if n % 10 == 9 else devices // 2)])
            for n in range(nodes)
        ],
    }
