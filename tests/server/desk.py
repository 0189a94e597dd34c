"""A desk with fixed views, and reviewers who know fixed tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from extender.model.errors import KubeError, WireError
from extender.verbs.views import (
    DecisionView,
    DeviceCount,
    DeviceRow,
    ExplainNode,
    ExplainView,
    FleetView,
    GangMemberRow,
    GangView,
    HolderRow,
    Identity,
    JudgeRow,
    NodeRow,
    NodeView,
    PredictedDevice,
    ResourceCount,
    TaintRow,
    TelemetryRow,
)

GPUS = DeviceCount("gpu.example.com", "H200", 8, 5, 2, 1)
LIVE = TelemetryRow(
    "gpu.example.com/node-0/gpu-0",
    "GPU-0",
    "fresh",
    age=3.0,
    utilisation=97,
    memory_used=64 << 30,
    memory_total=141 << 30,
    temperature=71,
    health=("DeviceUnhealthy",),
    text="XID 79 (restartNode)",
    holders=("team/pod-a",),
)
UNSEEN = TelemetryRow("gpu.example.com/node-1/gpu-0")
ROWS = tuple(
    NodeRow(
        f"node-{i}",
        i != 2,
        devices=(GPUS,),
        resources=(ResourceCount("nvidia.com/gpu", 8, 3),),
        telemetry={0: (LIVE,), 1: (UNSEEN,)}.get(i, ()),
    )
    for i in range(5)
)
PREDICTED = PredictedDevice("gpus", "gpu", "gpu.example.com/node-0/gpu-0")


class Desk:
    """A `ReadDesk`."""

    def fleet(self, after: str, limit: int) -> FleetView:
        rows = [row for row in ROWS if row.name > after]
        page = tuple(rows[:limit])
        return FleetView(7, len(ROWS), (GPUS,), page, page[-1].name if len(rows) > limit else "")

    def node(self, name: str) -> NodeView | None:
        if name != "node-0":
            return None
        device = DeviceRow(
            "gpu.example.com/node-0/gpu-0",
            "H200",
            available=False,
            holders=(HolderRow("team", "claim", ("pod-a",)),),
            attributes={"index": 0, "nvlink": True, "productName": "H200"},
            capacity={"memory": "141Gi"},
            taints=(TaintRow("berth.scheduler/unhealthy", "xid-79", "NoSchedule"),),
            telemetry=LIVE,
        )
        return NodeView(name, ready=True, schedulable=True, taints=(), devices=(device,), resources=())

    def decisions(self, limit: int, pod: str) -> Sequence[DecisionView]:
        found = [
            DecisionView(
                f"uid-{i}", "team", f"pod-{i}", 100.0 + i, "filter", 5, 3, {"DeviceLost": 2}, node="node-0"
            )
            for i in range(3)
        ]
        return [view for view in found if pod in ("", view.pod_name)][:limit]

    def gangs(self) -> Sequence[GangView]:
        return [
            GangView(
                "team",
                "job",
                "JobSet",
                4,
                "Planned",
                members=(GangMemberRow("team", "job-0", "u", "node-1"),),
            )
        ]

    def explain(self, pod: Mapping[str, object], nodes: Sequence[str], limit: int) -> ExplainView:
        if "spec" not in pod:
            raise WireError("pod.spec: is missing")
        explained = (
            ExplainNode(
                "node-0",
                "passed",
                "",
                "",
                (PREDICTED,),
                "",
                (JudgeRow("pack", 2.0, 0.5, "3 of 8 taken"),),
                0.5,
                10,
            ),
            ExplainNode(
                "node-1",
                "refused",
                "DeviceLost",
                "a device is lost",
                details="gpu-0: off the bus",
                telemetry=(UNSEEN,),
            ),
        )
        kept = tuple(node for node in explained if not nodes or node.name in nodes)[:limit]
        return ExplainView("team", "pod", "training", 2, 1, kept, {"DeviceLost": 1})

    def explain_existing(
        self, namespace: str, name: str, nodes: Sequence[str], limit: int
    ) -> ExplainView | None:
        return self.explain({"spec": {}}, nodes, limit) if (namespace, name) == ("team", "pod") else None


class Reviewer:
    """Both reviews: "good" may do all, "mute" nothing, "broken" finds no API server, the rest is forged."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def authenticate(self, token: str, audience: str) -> Identity | None:
        self.asked.append((token, audience))
        if token == "broken":
            raise KubeError("connection refused")
        return Identity(token) if token in ("good", "mute") else None

    async def allowed(self, identity: Identity, verb: str, path: str) -> bool:
        self.asked.append((verb, path))
        return identity.username == "good"
