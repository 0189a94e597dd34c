"""resource.k8s.io/v1: slices, claims, classes, taint rules."""

from __future__ import annotations

import builtins
from typing import Any

import msgspec

from extender.api.base import Wire
from extender.api.core import NodeSelector
from extender.api.meta import ObjectMeta

QuantityText = builtins.str | builtins.int | builtins.float


class DeviceAttribute(Wire, frozen=True, gc=False):
    """One value: exactly one of the fields is set. Lists are alpha (DRAListTypeAttributes)."""

    int: builtins.int | None = None
    bool: builtins.bool | None = None
    string: str | None = None
    version: str | None = None
    ints: list[builtins.int] | None = None
    bools: list[builtins.bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class CapacityRequestPolicyRange(Wire, frozen=True, gc=False):
    """Allowed consumption as a range with a step."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(Wire, frozen=True, gc=False):
    """How requests for a consumable capacity are rounded (KEP-5075)."""

    default: QuantityText | None = None
    valid_values: list[QuantityText] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, frozen=True, gc=False):
    """A capacity of a device and its request policy."""

    value: QuantityText = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Wire, frozen=True, gc=False):
    """A counter value (KEP-4815)."""

    value: QuantityText = "0"


class CounterSet(Wire, frozen=True, gc=False):
    """Counters shared by the devices of a pool."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(Wire, frozen=True, gc=False):
    """What a device takes from one counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None
    compatibility_groups: list[str] | None = None


class DeviceTaint(Wire, frozen=True, gc=False):
    """A taint on a device (KEP-5055)."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class DeviceToleration(Wire, frozen=True, gc=False):
    """A request's toleration of device taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: builtins.int | None = None


class Device(Wire, frozen=True, gc=False):
    """A device as published in a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Wire, frozen=True, gc=False):
    """Pool of a slice: complete when `resource_slice_count` slices of its newest generation exist."""

    name: str = ""
    generation: builtins.int = 0
    resource_slice_count: builtins.int = 0


class ResourceSliceSpec(Wire, frozen=True, gc=False):
    """Devices, or the shared counters of a pool, and the nodes which can reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None
    skip_node_operations: list[str] | None = None


class ResourceSlice(Wire, frozen=True, gc=False):
    """resource.k8s.io/v1 ResourceSlice."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELDeviceSelector(Wire, frozen=True, gc=False):
    """A CEL expression over `device`."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True, gc=False):
    """One selector; CEL is the only kind."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Wire, frozen=True, gc=False):
    """Parameters for a driver."""

    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(Wire, frozen=True, gc=False):
    """Configuration that a class adds."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Wire, frozen=True, gc=False):
    """Selectors, configuration and the extended resource that the class stands for."""

    selectors: list[DeviceSelector] | None = None
    config: list[DeviceClassConfiguration] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Wire, frozen=True, gc=False):
    """resource.k8s.io/v1 DeviceClass."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Wire, frozen=True, gc=False):
    """Requested consumable capacity by name."""

    requests: dict[str, QuantityText] | None = None


class DerivedAttribute(Wire, frozen=True, gc=False):
    """An attribute computed by the request (KEP-6080, alpha)."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(Wire, frozen=True, gc=False):
    """A request for devices of one class."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: builtins.int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceSubRequest(Wire, frozen=True, gc=False):
    """One alternative of a prioritized list (KEP-4816)."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: builtins.int = 0
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceRequest(Wire, frozen=True, gc=False):
    """A named request: exactly one of the two forms."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceConstraint(Wire, frozen=True, gc=False):
    """Devices of `requests` (all when empty) must share, or differ in, an attribute."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Wire, frozen=True, gc=False):
    """Configuration of a claim for some requests."""

    requests: list[str] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Wire, frozen=True, gc=False):
    """What a claim asks for."""

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceClaimConfiguration] | None = None


class ResourceClaimSpec(Wire, frozen=True, gc=False):
    """The spec of a claim or of a template's claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Wire, frozen=True, gc=False):
    """One allocated device."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, QuantityText] | None = None
    skip_node_operations: list[str] | None = None


class DeviceAllocationConfiguration(Wire, frozen=True, gc=False):
    """Configuration handed to the driver; `source` is FromClass or FromClaim."""

    source: str = ""
    requests: list[str] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Wire, frozen=True, gc=False):
    """Devices and configuration of an allocation."""

    results: list[DeviceRequestAllocationResult] | None = None
    config: list[DeviceAllocationConfiguration] | None = None


class AllocationResult(Wire, frozen=True, gc=False):
    """status.allocation of a claim."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Wire, frozen=True, gc=False):
    """Who may use the claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(Wire, frozen=True, gc=False):
    """Allocation and reservations."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] | None = None


class ResourceClaim(Wire, frozen=True, gc=False):
    """resource.k8s.io/v1 ResourceClaim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Wire, frozen=True, gc=False):
    """What claims made from the template look like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Wire, frozen=True, gc=False):
    """resource.k8s.io/v1 ResourceClaimTemplate."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceTaintSelector(Wire, frozen=True, gc=False):
    """Which devices a rule taints; an absent field matches all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, frozen=True, gc=False):
    """The taint and the devices it is for."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Wire, frozen=True, gc=False):
    """resource.k8s.io DeviceTaintRule (v1 since 1.37)."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
