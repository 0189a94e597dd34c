"""kube-scheduler with Berth against kube-scheduler alone, on a real control plane, in alternating runs.

Both have the shipped KubeSchedulerConfiguration; alone, without its extender. Pods and their claims are there
before the scheduler starts; timed is from the first binding to the last. Berth runs under the deployed
rights, certificates and settings, and only while it is asked.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import yaml

from bench.loading import body, load
from bench.result import Result, at_least, figure
from tests.controlplane import objects
from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.endtoend.fleet import DRA
from tests.endtoend.replica import SYSTEM_NODE, Deployed

NODES = 500
PODS = 600
PAIRS = 5
MORE_PAIRS = 4
"""Run when equal runs differ by more than `CALM`."""
CALM = 0.05
RUN_S = 300
NAMESPACE = "bench"


def run(pairs: int = PAIRS, more_pairs: int = MORE_PAIRS) -> list[Result]:
    """Pods per second of both, and the median of the pairs' ratios."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as cluster:
        _fill(cluster)
        deployed = Deployed(cluster, Path(folder))
        deployed.apply()
        objects.register_node(cluster.client(), _system_node())
        measured: list[tuple[float, float]] = []
        while len(measured) < pairs or (
            len(measured) < pairs + more_pairs and _spread([alone for alone, _ in measured]) > CALM
        ):
            measured.append(_pair(deployed, berth_first=len(measured) % 2 == 1))
    return _results(measured)


def _results(measured: list[tuple[float, float]]) -> list[Result]:
    """The lines of the report; a pair is pods/s alone and with Berth."""
    alone, with_berth = ([pair[side] for pair in measured] for side in (0, 1))
    note = "alone/with: " + ", ".join(f"{a:.1f}/{b:.1f}" for a, b in measured)
    spread = _spread(alone)
    if spread > CALM:
        note += f"; equal runs alone differ by {spread:.0%}, so the machine itself was not calm"
    ratio = median(b / a for a, b in measured)
    where = f"{NODES} nodes x 8 devices, {PODS} claim pods"
    return [
        at_least(f"pods/s with Berth / alone, {where}", ratio, "ratio", 0.95, note),
        figure("pods/s, kube-scheduler with Berth, median", median(with_berth), "pods/s"),
        figure("pods/s, kube-scheduler alone, median", median(alone), "pods/s"),
    ]


def _spread(rates: list[float]) -> float:
    """Of equal runs: largest less smallest, as a share of the median."""
    return (max(rates) - min(rates)) / median(rates)


def _system_node() -> Object:
    node = objects.cpu_node(SYSTEM_NODE)
    node["spec"]["taints"] = [{"key": "system", "value": "only", "effect": "NoSchedule"}]
    return node


def _fill(cluster: ControlPlane) -> None:
    """Nodes, slices, class, template."""
    admin = cluster.client()
    names = [f"gpu-{number:03d}" for number in range(NODES)]
    slices = admin.path(DRA, "ResourceSlice")
    load(cluster, (body("/api/v1/nodes", objects.gpu_node(name)) for name in names))
    load(cluster, (body(slices, objects.resource_slice(name)) for name in names))
    for name in names:  # every new Node is tainted not-ready
        admin.patch("v1", "Node", name, {"spec": {"taints": None}})
    admin.apply(objects.device_class(extended_resource=None))
    cluster.create_namespace(NAMESPACE)
    admin.create(objects.claim_template("one", namespace=NAMESPACE))


def _pair(deployed: Deployed, *, berth_first: bool) -> tuple[float, float]:
    rates: dict[bool, float] = {}
    for with_berth in (berth_first, not berth_first):
        rates[with_berth] = _with_berth(deployed) if with_berth else _rate(deployed.cluster, _alone(deployed))
    return rates[False], rates[True]


def _alone(deployed: Deployed) -> str:
    config = yaml.safe_load(deployed.scheduler_config(0))
    del config["extenders"]
    text: str = yaml.safe_dump(config)
    return text


def _with_berth(deployed: Deployed) -> float:
    replica = deployed.replica(f"berth-{len(deployed.replicas)}")
    replica.start()
    try:
        replica.wait_ready()
        until = time.monotonic() + 60
        while not replica.leads():
            if time.monotonic() > until:
                raise TimeoutError(replica.log_text()[-2000:])
            time.sleep(0.1)
        return _rate(deployed.cluster, deployed.scheduler_config(replica.port))
    finally:
        replica.stop()


def _rate(cluster: ControlPlane, config: str) -> float:
    """Pods bound per second, with a scheduler of this configuration."""
    admin = cluster.client()
    pods = [objects.pod(f"pod-{n:03d}", namespace=NAMESPACE, templates=["one"]) for n in range(PODS)]
    load(cluster, (body(f"/api/v1/namespaces/{NAMESPACE}/pods", pod) for pod in pods))
    _wait(cluster, "ResourceClaim", PODS)
    version = admin.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods", params={"limit": "1"})
    bound: dict[str, float] = {}
    cluster.start_scheduler(config)
    try:
        since = version["metadata"]["resourceVersion"]
        for event in admin.watch("v1", "Pod", since, NAMESPACE, seconds=RUN_S):
            if event["object"]["spec"].get("nodeName"):
                bound.setdefault(event["object"]["metadata"]["name"], time.monotonic())
            if len(bound) == PODS:
                break
    finally:
        cluster.stop_scheduler()
        for api_version, kind in [("v1", "Pod"), (DRA, "ResourceClaim")]:
            admin.delete_all(api_version, kind, NAMESPACE)
        _wait(cluster, "ResourceClaim", 0)
    if len(bound) < PODS:
        raise RuntimeError(f"{len(bound)} of {PODS} pods bound within {RUN_S} s")
    return (PODS - 1) / (max(bound.values()) - min(bound.values()))


def _wait(cluster: ControlPlane, kind: str, count: int) -> None:
    until = time.monotonic() + 120
    while len(cluster.client().list_all(DRA, kind, NAMESPACE)) != count:
        if time.monotonic() > until:
            raise TimeoutError(f"not {count} of kind {kind} in time")
        time.sleep(0.5)
