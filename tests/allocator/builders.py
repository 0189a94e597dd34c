"""Short ways to write devices, slices, claims and classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from extender.allocator import (
    AllocatedState,
    Features,
    Outcome,
    SelectorFault,
    allocate,
    gather_pools,
)
from extender.api.core import Node, NodeStatus
from extender.api.meta import ObjectMeta
from extender.api.resource import (
    AllocationResult,
    CapacityRequirements,
    CELDeviceSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    QuantityText,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from extender.model.device import DeviceFacts

DRIVER = "gpu.example.com"
NODE = Node(metadata=ObjectMeta(name="node-1", labels={"zone": "a"}))
ALL_DEFAULTS = Features.default("1.37")
CLASSES = {"gpu": DeviceClass(ObjectMeta(name="gpu"), DeviceClassSpec())}

Verdict = Callable[[DeviceFacts], bool | SelectorFault]


class Table:
    """Evaluates expressions by looking their meaning up; counts how often it was asked."""

    def __init__(self, meanings: Mapping[str, Verdict] | None = None) -> None:
        self._meanings = meanings or {}
        self.asked = 0

    def matches(self, expression: str, facts: DeviceFacts) -> bool | SelectorFault:
        self.asked += 1
        return self._meanings[expression](facts)

    def derive(self, expression: str, facts: DeviceFacts) -> DeviceAttribute | SelectorFault:
        raise AssertionError(f"no test derives: {expression} {facts.driver}")


def attribute(value: str | int | bool | list[str]) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool=value)
    if isinstance(value, int):
        return DeviceAttribute(int=value)
    return DeviceAttribute(strings=value) if isinstance(value, list) else DeviceAttribute(string=value)


def device(name: str, attributes: Mapping[str, Any] | None = None, **fields: Any) -> Device:
    published = {key: attribute(value) for key, value in attributes.items()} if attributes else None
    return Device(name=name, attributes=published, **fields)


def capacity(value: str, **fields: Any) -> DeviceCapacity:
    return DeviceCapacity(value=value, **fields)


def slice_of(
    devices: Sequence[Device],
    *,
    name: str = "slice-1",
    driver: str = DRIVER,
    pool: str = "pool-1",
    generation: int = 1,
    count: int = 1,
    node: str | None = "node-1",
    **fields: Any,
) -> ResourceSlice:
    return ResourceSlice(
        ObjectMeta(name=name),
        ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(pool, generation, count),
            node_name=node,
            devices=list(devices) or None,
            **fields,
        ),
    )


def selectors(*expressions: str) -> list[DeviceSelector] | None:
    return [DeviceSelector(CELDeviceSelector(text)) for text in expressions] or None


def requested(amounts: Mapping[str, QuantityText] | None) -> CapacityRequirements | None:
    return CapacityRequirements(dict(amounts)) if amounts else None


def request(
    name: str = "req",
    count: int = 1,
    *expressions: str,
    mode: str = "ExactCount",
    amounts: Mapping[str, QuantityText] | None = None,
    **fields: Any,
) -> DeviceRequest:
    return DeviceRequest(
        name,
        ExactDeviceRequest(
            device_class_name="gpu",
            allocation_mode=mode,
            count=count if mode == "ExactCount" else 0,
            selectors=selectors(*expressions),
            capacity=requested(amounts),
            **fields,
        ),
    )


def alternatives(name: str, *subs: DeviceSubRequest) -> DeviceRequest:
    return DeviceRequest(name, first_available=list(subs))


def sub(name: str, count: int = 1, *expressions: str, mode: str = "ExactCount") -> DeviceSubRequest:
    return DeviceSubRequest(
        name,
        "gpu",
        selectors=selectors(*expressions),
        allocation_mode=mode,
        count=count if mode == "ExactCount" else 0,
    )


def match(name: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(list(requests) or None, match_attribute=name)


def distinct(name: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(list(requests) or None, distinct_attribute=name)


def claim(
    *requests: DeviceRequest, constraints: Iterable[DeviceConstraint] = (), name: str = "claim"
) -> ResourceClaim:
    return ResourceClaim(
        ObjectMeta(name=name, namespace="team", uid=f"uid-{name}"),
        ResourceClaimSpec(DeviceClaim(requests=list(requests), constraints=list(constraints) or None)),
    )


def node_with(*features: str) -> Node:
    return Node(metadata=NODE.metadata, status=NodeStatus(declared_features=list(features)))


def attempt(
    claims: Sequence[ResourceClaim],
    slices: Sequence[ResourceSlice],
    *,
    in_use: AllocatedState | None = None,
    features: Features = ALL_DEFAULTS,
    classes: Mapping[str, DeviceClass] = CLASSES,
    evaluator: Table | None = None,
    node: Node = NODE,
    steps: int = 100_000,
) -> Outcome:
    """One attempt on a node."""
    return allocate(
        node,
        claims,
        classes,
        gather_pools(node, slices, features),
        in_use or AllocatedState(),
        features,
        steps,
        evaluator=evaluator or Table(),
    )


def names(outcome: Outcome) -> list[list[str]]:
    """Names of the devices by claim; fails when there is no allocation."""
    results: tuple[AllocationResult, ...] | None = getattr(outcome, "results", None)
    assert results is not None, outcome
    return [[result.device for result in found.devices.results or ()] for found in results]
