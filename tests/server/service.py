"""The four verbs over a real ledger, desk and selector engine, for tests that speak HTTP to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import numpy as np
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from extender.allocator.columns import SelectorColumns
from extender.allocator.features import Features
from extender.allocator.predict import Predictor
from extender.allocator.shapes import ShapeSearch
from extender.inventory.ledger import Ledger
from extender.model.reason import Reason
from extender.observability.decisions import DecisionRing
from extender.observability.metrics import Metrics
from extender.scoring.bench import Bench
from extender.scoring.fullness import Pack, Spread
from extender.scoring.policy import Policy, parse_policy
from extender.scoring.pool import Pool
from extender.selectors import Environment
from extender.server.app import Deps, build_app
from extender.server.reader import Reader
from extender.server.record import Recorder
from extender.server.verbs import VerbDeps, VerbRoutes
from extender.verbs.desk import Desk, Question, Refusals, Scope, SlotFinder
from tests.inventory.objects import GPU, claim, device_class, node, result, slice_of

BODY_LIMIT = 1 << 20
SCHEDULER = "default-scheduler"
POLICY = {
    "apiVersion": "berth.scheduler/v1alpha1",
    "kind": "Policy",
    "metadata": {"name": "test"},
    "judges": {"pack": 3, "pool": 5},
}


class Standing:
    """Whether the replica may answer, as a test wants it."""

    def __init__(self) -> None:
        self.why = ""

    def obstacle(self) -> str:
        return self.why


class Switch:
    """Vetoes on or off, as a test wants it."""

    def __init__(self) -> None:
        self.vetoes = True
        self.only_watching = False

    def enforce(self) -> bool:
        return self.vetoes and not self.only_watching

    def shadow(self) -> bool:
        return self.only_watching


class Refuser:
    """A veto that refuses named nodes, each for a reason of its own."""

    def __init__(self) -> None:
        self.why: dict[str, Reason] = {}

    def refuse(self, question: Question) -> Refusals | None:
        if not self.why:
            return None
        reasons = sorted(set(self.why.values()))
        refused = np.array(
            [reasons.index(self.why[name]) + 1 if name in self.why else 0 for name in question.names], np.int8
        )
        return Refusals(refused, [(reason, f"because of {reason.lower()}") for reason in reasons])


class Broken:
    """A veto with a bug."""

    def refuse(self, question: Question) -> Refusals | None:
        raise ZeroDivisionError(f"secret of {question.pod.metadata.name}")


@dataclass
class Api:
    """Binds pods like an API server: a UID and a node once, everything else is refused."""

    answers: dict[str, str] = field(default_factory=dict)
    posted: list[tuple[str, str, str, str]] = field(default_factory=list)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        self.posted.append((namespace, name, uid, node))
        return self.answers.get(name, "")


class Service:
    """Everything that the verbs need, built as the composition root builds it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry, "test")
        self.ring = DecisionRing(100)
        self.recorder = Recorder(self.ring, self.metrics, debug=True)
        self.ledger = Ledger((), [self.recorder])
        self.recorder.watch(self.ledger)
        self.standing = Standing()
        self.switch = Switch()
        self.refuser = Refuser()
        self.api = Api()
        self.now = 1000.0
        selectors = SelectorColumns(Environment())
        search = ShapeSearch(selectors, selectors.relevant, Features.default("1.37"))
        bench = Bench([Pack(), Spread(), Pool(["*/gpu"])])
        self.desk = Desk(
            scope=Scope(frozenset({SCHEDULER}), frozenset({"excluded"}), {}),
            predictor=Predictor(selectors, search),
            vetoes=[self.refuser],
            bench=bench,
            policy=policy(bench),
            finder=SlotFinder(),
        )
        self.verbs = VerbRoutes(
            VerbDeps(
                ledger=self.ledger,
                desk=self.desk,
                standing=self.standing,
                switch=self.switch,
                binder=self.api,
                recorder=self.recorder,
                metrics=self.metrics,
                clock=lambda: self.now,
                timer=lambda: 0.0,
            )
        )
        self.reader = Reader(self.ledger, self.desk, self.ring, self.switch, lambda: self.now)

    def app(self) -> ASGIApp:
        return build_app(
            Deps(self.reader, list, self.registry, "test", BODY_LIMIT, hot=self.verbs.endpoints())
        )

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


def policy(bench: Bench) -> Policy:
    return parse_policy(POLICY, bench.names, "test")


def gpu_fleet(service: Service) -> None:
    """Nodes n0 to n2 with two devices each, n0 half full; n3 has a device plugin with 8 GPUs, n4 nothing."""
    nodes = [node(f"n{i}", {GPU: "8"} if i == 3 else None) for i in range(5)]
    service.ledger.replaced("Node", nodes, [])
    slices = [slice_of(f"s{i}", f"n{i}", ["a", "b"], node=f"n{i}") for i in range(3)]
    service.ledger.replaced("ResourceSlice", slices, [])
    expression = "device.attributes['gpu.example.com'].type == 'gpu'"
    service.ledger.replaced("DeviceClass", [device_class("gpu", expression)], [])
    held = claim("held", [result("n0", "a")])
    service.ledger.replaced("ResourceClaim", [held, claim("free"), claim("free-2")], [])


def wire_pod(name: str = "q", **fields: Any) -> dict[str, Any]:
    """A pod as kube-scheduler sends it; claims, requests, namespace and scheduler are short for more."""
    asked = fields.get("requests", {"cpu": "1"})
    document: dict[str, Any] = {
        "metadata": {"name": name, "namespace": fields.get("namespace", "ns"), "uid": f"uid-{name}"},
        "spec": {
            "schedulerName": fields.get("scheduler", SCHEDULER),
            "containers": [{"name": "main", "resources": {"requests": asked}}],
        },
        "status": {"phase": "Pending"},
    }
    if "claims" in fields:
        entries = [{"name": f"c{i}", "resourceClaimName": c} for i, c in enumerate(fields["claims"])]
        document["spec"]["resourceClaims"] = entries
    return document


def args(pod: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {"Pod": pod, "Nodes": None, "NodeNames": list(names)}


def args_with_nodes(pod: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    items = [
        {"metadata": {"name": name, "labels": {"x": name}}, "status": {"extra": [1.5]}} for name in names
    ]
    return {"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}


GPU_POD: Final = wire_pod(claims=["free"])


def post(client: httpx.Client, verb: str, body: Any) -> Any:
    """What a verb answers to a body that can be read: always 200 and JSON."""
    answer = client.post(f"/extender/{verb}", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    return answer.json()


def empty(**fields: Any) -> dict[str, Any]:
    """A filter reply with nothing in it but what is given."""
    nothing: dict[str, Any] = {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    return nothing | fields
