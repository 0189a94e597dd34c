"""What people and tools are shown: plain values, made by a `ReadDesk`, rendered by `server` and `cli`.

Times are seconds since the epoch. Device ids are "driver/pool/device". Quantities are Kubernetes text
("80Gi").
Never: behaviour, or a live object of the ledger; a view is safe to keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Verdict = Literal["passed", "refused", "unresolvable", "error"]
"""How filter answers for a node: NodeNames, FailedNodes, FailedAndUnresolvableNodes, or Error."""

Outcome = Literal["pending", "right", "wrong", "unpredicted"]
"""What became of a prediction: not bound yet, the devices named, other devices, or none were named."""

TelemetryState = Literal["fresh", "stale", "unsupported", "lost", "absent"]
"""What a reading is worth: of now, of a while ago, not to be had, of a device that is gone, or unknown."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a bearer token speaks for (TokenReview status.user)."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """Devices of one driver and product: `total` = `free` + `taken` + `unavailable`."""

    driver: str
    product: str
    total: int
    free: int
    taken: int
    unavailable: int = 0


@dataclass(frozen=True, slots=True)
class ResourceCount:
    """A device-plugin (extended) resource of a node, in whole units."""

    name: str
    allocatable: int
    requested: int


@dataclass(frozen=True, slots=True)
class TelemetryRow:
    """What a device ("driver/pool/device") is doing now; None where the state of a value says there is none.

    `state` is the best of its values', `age` in seconds. `utilisation` in percent, memory in bytes,
    `temperature` in degrees Celsius. `health`: codes of what holds against it, gravest first, `text` in
    words; empty: nothing is known against it. `holders`: namespace/pod, or [namespace/claim] of a claim
    without pods.
    """

    device: str
    uuid: str = ""
    state: TelemetryState = "absent"
    age: float | None = None
    utilisation: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    temperature: int | None = None
    health: tuple[str, ...] = ()
    text: str = ""
    holders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node in the list of the fleet; `telemetry` of its devices in usable pools, if any is taken in."""

    name: str
    ready: bool
    schedulable: bool = True
    devices: tuple[DeviceCount, ...] = ()
    resources: tuple[ResourceCount, ...] = ()
    telemetry: tuple[TelemetryRow, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetView:
    """A page of nodes by name, with totals of the whole fleet; `next` is its last name when more follow."""

    generation: int
    node_count: int
    totals: tuple[DeviceCount, ...]
    nodes: tuple[NodeRow, ...]
    next: str = ""


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A claim which holds a device, and the pods that the claim is reserved for."""

    namespace: str
    claim: str
    pods: tuple[str, ...] = ()
    shared: bool = False
    admin: bool = False


@dataclass(frozen=True, slots=True)
class TaintRow:
    """A taint of a node or device."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device of a node; `available` says whether an ordinary request could take it now."""

    id: str
    product: str
    available: bool
    holders: tuple[HolderRow, ...] = ()
    attributes: Mapping[str, str | int | bool] = field(default_factory=lambda: MappingProxyType({}))
    capacity: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    taints: tuple[TaintRow, ...] = ()
    telemetry: TelemetryRow | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node with every device; `unpublished` are uuids that telemetry sees on it and no slice has."""

    name: str
    ready: bool
    schedulable: bool
    taints: tuple[TaintRow, ...]
    devices: tuple[DeviceRow, ...]
    resources: tuple[ResourceCount, ...]
    unpublished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PredictedDevice:
    """A device that a claim's request is expected to get; `device` is "driver/pool/device"."""

    claim: str
    request: str
    device: str


@dataclass(frozen=True, slots=True)
class DecisionView:
    """The last answer that a pod got, and what became of it.

    `rejected` counts nodes by reason code. `node` is where the pod was bound, before that the best one of the
    last prioritize reply, with its `score`; `predicted` are the devices named for that node in the last reply
    before binding, `unpredicted` the reason why none were. `text` is set when the answer was an Error.
    """

    pod_uid: str
    pod_namespace: str
    pod_name: str
    time: float
    verb: str
    candidates: int
    passed: int
    rejected: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    text: str = ""
    shadow: bool = False
    node: str = ""
    score: int | None = None
    predicted: tuple[PredictedDevice, ...] = ()
    unpredicted: str = ""
    outcome: Outcome = "pending"


@dataclass(frozen=True, slots=True)
class GangMemberRow:
    """A pod of a gang: its planned or bound node, "" when there is none."""

    namespace: str
    pod: str
    pod_uid: str
    node: str = ""
    bound: bool = False


@dataclass(frozen=True, slots=True)
class GangView:
    """A gang: where its identity comes from (`source`), how many members it needs, and how far it is."""

    namespace: str
    name: str
    source: str
    min_members: int
    phase: str
    reason: str = ""
    members: tuple[GangMemberRow, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge's opinion of a node: `score` 0..1, the `weight` it counts with, and the evidence in words."""

    judge: str
    weight: float
    score: float
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class ExplainNode:
    """What filter and prioritize would say of one node.

    `reason` is a stable code ("" when the node passes), `total` the weighted mean of the judges (0..1),
    `score` the integer that kube-scheduler would get (0..10); both None when the node does not pass.
    `details` has the numbers and names behind a refusal, `telemetry` what the predicted devices are doing,
    `unpublished` the uuids that telemetry sees on the node and no slice has.
    """

    name: str
    verdict: Verdict
    reason: str = ""
    text: str = ""
    predicted: tuple[PredictedDevice, ...] = ()
    unpredicted: str = ""
    judges: tuple[JudgeRow, ...] = ()
    total: float | None = None
    score: int | None = None
    details: str = ""
    telemetry: tuple[TelemetryRow, ...] = ()
    unpublished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainView:
    """A what-if answer for one pod: best nodes first, then the refused ones.

    `note` says why a pod is none of our business (answered with an echo), what an Error would say, and what
    of the pod could not be used.
    `rejected` counts all refused nodes by reason, also those left out of `nodes`.
    """

    pod_namespace: str
    pod_name: str
    workload_class: str
    candidates: int
    passed: int
    nodes: tuple[ExplainNode, ...]
    rejected: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    shadow: bool = False
    note: str = ""
