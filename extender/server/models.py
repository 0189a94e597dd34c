"""What the read API answers, for OpenAPI: the views of `extender.verbs.views` in camelCase JSON.

Never: anything that a view does not say.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


class View(BaseModel):
    """A view read off a dataclass of the same fields."""

    model_config = ConfigDict(
        from_attributes=True,
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )


class DeviceCount(View):
    """Devices of one driver and product: total = free + taken + unavailable."""

    driver: str
    product: str
    total: int
    free: int
    taken: int
    unavailable: int


class ResourceCount(View):
    """A device-plugin (extended) resource of a node, in whole units."""

    name: str
    allocatable: int
    requested: int


class Telemetry(View):
    """What a device is doing now; null where there is no value."""

    device: str
    """driver/pool/device"""
    uuid: str
    state: Literal["fresh", "stale", "unsupported", "lost", "absent"]
    """The best of its values'."""
    age: float | None
    """Seconds."""
    utilisation: int | None
    """Percent."""
    memory_used: int | None
    """Bytes."""
    memory_total: int | None
    """Bytes."""
    temperature: int | None
    """Degrees Celsius."""
    health: list[str]
    """Codes of what holds against it, gravest first."""
    text: str
    """The same in words."""
    holders: list[str]
    """namespace/pod, or [namespace/claim] for a claim without pods."""


class NodeRow(View):
    """A node in the list of the fleet."""

    name: str
    ready: bool
    schedulable: bool
    devices: list[DeviceCount]
    resources: list[ResourceCount]
    telemetry: list[Telemetry]


class Fleet(View):
    """A page of nodes by name, with totals of the whole fleet."""

    generation: int
    """Grows with every change of the ledger."""
    node_count: int
    totals: list[DeviceCount]
    nodes: list[NodeRow]
    next: str
    """Give this as `after` for the next page; empty on the last."""


class Holder(View):
    """A claim which holds a device, and the pods that it is reserved for."""

    namespace: str
    claim: str
    pods: list[str]
    shared: bool
    admin: bool


class Taint(View):
    """A taint of a node or device."""

    key: str
    value: str
    effect: str


class Device(View):
    """A device of a node."""

    id: str
    """driver/pool/device"""
    product: str
    available: bool
    """Whether an ordinary request could take it now."""
    holders: list[Holder]
    attributes: dict[str, bool | int | str]
    capacity: dict[str, str]
    taints: list[Taint]
    telemetry: Telemetry | None


class Node(View):
    """A node with every device."""

    name: str
    ready: bool
    schedulable: bool
    taints: list[Taint]
    devices: list[Device]
    resources: list[ResourceCount]
    unpublished: list[str]
    """uuids that telemetry sees on the node and no slice has."""


class PredictedDevice(View):
    """A device that a claim's request is expected to get."""

    claim: str
    request: str
    device: str
    """driver/pool/device"""


class Decision(View):
    """The last answer that a pod got, and what became of it."""

    pod_uid: str
    pod_namespace: str
    pod_name: str
    time: float
    """Seconds since the epoch."""
    verb: str
    candidates: int
    passed: int
    rejected: dict[str, int]
    """Nodes by reason code."""
    text: str
    """Set when the answer was an Error."""
    shadow: bool
    """Whether this was only recorded, and the scheduler was told yes."""
    node: str
    """Where the pod was bound; before that the best node of the last prioritize reply."""
    score: int | None
    predicted: list[PredictedDevice]
    """The devices named for that node in the last reply before binding."""
    unpredicted: str
    """Why none were named."""
    outcome: Literal["pending", "right", "wrong", "unpredicted"]


class Decisions(View):
    """Decisions, the newest first."""

    decisions: list[Decision]


class GangMember(View):
    """A pod of a gang."""

    namespace: str
    pod: str
    pod_uid: str
    node: str
    """Its planned or bound node; empty when there is none."""
    bound: bool


class Gang(View):
    """A gang and how far it is."""

    namespace: str
    name: str
    source: str
    """Where its identity comes from."""
    min_members: int
    phase: str
    reason: str
    members: list[GangMember]


class Gangs(View):
    """Every gang that is known."""

    gangs: list[Gang]


class Judge(View):
    """One judge's opinion of a node."""

    judge: str
    weight: float
    score: float
    """0 to 1."""
    evidence: str


class ExplainNode(View):
    """What filter and prioritize would say of one node."""

    name: str
    verdict: Literal["passed", "refused", "unresolvable", "error"]
    reason: str
    """A stable code, empty when the node passes."""
    text: str
    predicted: list[PredictedDevice]
    unpredicted: str
    """Why no devices could be named."""
    judges: list[Judge]
    total: float | None
    """The judges' weighted mean, 0 to 1."""
    score: int | None
    """The integer that kube-scheduler would get, 0 to 10."""
    details: str
    """Numbers and names behind a refusal."""
    telemetry: list[Telemetry]
    """What the predicted devices are doing."""
    unpublished: list[str]
    """uuids that telemetry sees on the node and no slice has."""


class Explanation(View):
    """What filter and prioritize would say to a pod: the best nodes first, then the refused ones."""

    pod_namespace: str
    pod_name: str
    workload_class: str
    candidates: int
    passed: int
    nodes: list[ExplainNode]
    rejected: dict[str, int]
    """All refused nodes by reason, also those that are not listed."""
    shadow: bool
    note: str
    """Why the pod is none of our business, or what an Error would say."""


class ExplainRequest(BaseModel):
    """A pod to explain: a document, or the name of one that exists."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    pod: dict[str, Any] | None = None
    """A core/v1 Pod, which need not exist."""
    namespace: str = "default"
    """Namespace of the existing pod."""
    name: str = ""
    """Name of the existing pod."""
    nodes: list[str] = []
    """Candidates; empty for all nodes."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    """How many nodes to describe."""

    @model_validator(mode="after")
    def _one_pod(self) -> ExplainRequest:
        if (self.pod is None) == (not self.name):
            raise ValueError("give either pod or name")
        return self


class FieldFault(BaseModel):
    """A field of a request that can't be used."""

    field: str
    text: str


class Failure(BaseModel):
    """Why there is no answer."""

    error: str
    fields: list[FieldFault] = []
