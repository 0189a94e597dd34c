"""A fleet of any size, made up: nodes, slices, claims and pods as wire structs, and the pods that ask for it.

For `berth serve --embedded --nodes N`, load tests and benches. 20 kinds of nodes by default, 8 devices each,
half of them taken, every tenth node full; every eleventh node has a device plugin instead of slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extender.api.core import (
    Container,
    Namespace,
    Node,
    NodeStatus,
    Pod,
    PodResourceClaim,
    PodSpec,
    ResourceRequirements,
    Toleration,
)
from extender.api.meta import Condition, ObjectMeta
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
PLUGIN_RESOURCE = "nvidia.com/gpu"
KINDS = 20
DEVICES = 8
FULL_EVERY = 10
PLUGIN_EVERY = 11  # coprime to KINDS: no kind of node is lost to device plugins
PENDING = 400


@dataclass(frozen=True, slots=True)
class PodKind:
    """A kind of pod that asks: `share` is its weight among all, `count` its devices, 0 for no claim."""

    name: str
    share: int
    count: int = 0
    selector: str = ""
    plugin: int = 0


POD_KINDS = (
    PodKind("claim-1", 40, 1),
    PodKind("claim-8", 15, 8),
    PodKind("claim-selector", 20, 2, f"device.attributes['{DRIVER}'].productName.startsWith('NVIDIA H10')"),
    PodKind("plugin-1", 10, plugin=1),
    PodKind("cpu", 15),
)


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


def gpu_slice(node: int, kind: int, devices: int = DEVICES) -> ResourceSlice:
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


def gpu_node(number: int, plugin: int = 0) -> Node:
    """A large node in one of three zones; `plugin`: devices that a device plugin announces."""
    offered: dict[str, str | int | float] = {"cpu": "128", "memory": "1Ti", "pods": "110"}
    if plugin:
        offered[PLUGIN_RESOURCE] = str(plugin)
    return Node(
        metadata=ObjectMeta(
            name=node_name(number),
            uid=f"node-{number}",
            labels={
                "kubernetes.io/hostname": node_name(number),
                "topology.kubernetes.io/zone": f"z{number % 3}",
            },
        ),
        status=NodeStatus(allocatable=offered, conditions=[Condition("Ready", "True")]),
    )


def gpu_class() -> DeviceClass:
    """The class that NVIDIA's driver installs."""
    return DeviceClass(
        metadata=ObjectMeta(name=DRIVER),
        spec=DeviceClassSpec(
            selectors=[DeviceSelector(cel=CELDeviceSelector(expression=CLASS_EXPRESSION))],
            extended_resource_name=PLUGIN_RESOURCE,
        ),
    )


def claim(
    name: str, count: int = 1, taken: list[tuple[int, int]] | None = None, selector: str = ""
) -> ResourceClaim:
    """A claim for `count` devices, allocated to the (node, device) pairs of `taken` when given."""
    allocation = None
    selectors = [DeviceSelector(cel=CELDeviceSelector(expression=selector))] if selector else None
    exactly = ExactDeviceRequest(DRIVER, selectors, "ExactCount", count)
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
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=[DeviceRequest("gpu", exactly)])),
        status=ResourceClaimStatus(allocation=allocation),
    )


def pod(name: str, claim_name: str | None = None, node: str = "", plugin: int = 0) -> Pod:
    """A small pod, with one claim or some of a device plugin's devices when asked for."""
    claims = [PodResourceClaim(name="gpu", resource_claim_name=claim_name)] if claim_name else None
    requests: dict[str, str | int | float] = {"cpu": "1", "memory": "1Gi"}
    if plugin:
        requests[PLUGIN_RESOURCE] = str(plugin)
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"pod-{name}"),
        spec=PodSpec(
            node_name=node,
            scheduler_name="default-scheduler",
            priority=0,
            containers=[Container(name="main", resources=ResourceRequirements(requests=requests))],
            resource_claims=claims,
            tolerations=[Toleration(operator="Exists")],
        ),
    )


def asking(kind: PodKind, number: int) -> Pod:
    """The pending pod `number` of a kind; its claim is one of `pending_claims`, which are used in turn."""
    claimed = f"{kind.name}-{number % PENDING}" if kind.count else None
    return pod(f"{kind.name}-{number}", claimed, plugin=kind.plugin)


def pending_claims(each: int = PENDING) -> list[ResourceClaim]:
    """`each` claims without an allocation for every kind of pod that has one."""
    return [
        claim(f"{kind.name}-{number}", kind.count, selector=kind.selector)
        for kind in POD_KINDS
        if kind.count
        for number in range(each)
    ]


def fleet(
    nodes: int,
    kinds: int = KINDS,
    devices: int = DEVICES,
    *,
    plugin_every: int = PLUGIN_EVERY,
    pending: int = PENDING,
) -> dict[str, list[Any]]:
    """Objects by kind: `nodes` nodes, half of each one's devices taken, every tenth node full.

    Every `plugin_every`-th node has a device plugin (0: none has); `pending` claims wait for each kind of
    pod.
    """

    def has_plugin(node: int) -> bool:
        return bool(plugin_every) and node % plugin_every == plugin_every - 1

    def held(node: int) -> int:
        return devices if node % FULL_EVERY == FULL_EVERY - 1 else devices // 2

    published = [n for n in range(nodes) if not has_plugin(n)]
    plugged = [n for n in range(nodes) if has_plugin(n)]
    taken = [claim(f"held-{n}", held(n), taken=[(n, d) for d in range(held(n))]) for n in published]
    return {
        "Namespace": [Namespace(metadata=ObjectMeta(name="default"))],
        "DeviceClass": [gpu_class()],
        "Node": [gpu_node(n, devices if has_plugin(n) else 0) for n in range(nodes)],
        "ResourceSlice": [gpu_slice(n, n % kinds, devices) for n in published],
        "ResourceClaim": [*taken, *pending_claims(pending)],
        "Pod": [pod(f"plugin-{n}", node=node_name(n), plugin=held(n)) for n in plugged],
    }
