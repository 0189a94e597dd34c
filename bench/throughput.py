"""kube-scheduler with Berth against kube-scheduler alone, on a real control plane, in alternating runs.

All have the shipped KubeSchedulerConfiguration; alone, without its extender. An extender that only echoes
runs beside them: on a machine whose cores the control plane fills, what it costs no extender can save. Pods
and their claims are there before the scheduler starts; timed is from the first binding to the last. Berth
runs under the deployed rights, certificates and settings, and only while it is asked.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import yaml

from bench.echo import echoing
from bench.loading import body, load
from bench.result import Result, at_least, figure
from tests.controlplane import objects
from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.endtoend.fleet import DRA
from tests.endtoend.replica import SYSTEM_NODE, Deployed

NODES = 500
PODS = 600
ROUNDS = 5
MORE_ROUNDS = 4
"""Run when equal runs differ by more than `CALM`."""
CALM = 0.05
RUN_S = 300
NAMESPACE = "bench"

Contender = Callable[[Deployed], float]
"""Runs kube-scheduler once, and returns its pods/s."""


def run(rounds: int = ROUNDS, more_rounds: int = MORE_ROUNDS) -> list[Result]:
    """Pods per second of each, and the medians of the rounds' ratios."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as cluster:
        _fill(cluster)
        deployed = Deployed(cluster, Path(folder))
        deployed.apply()
        objects.register_node(cluster.client(), _system_node())
        contenders = [_alone, _with_berth, _with_echo]
        measured: dict[Contender, list[float]] = {contender: [] for contender in contenders}
        done = 0
        while done < rounds or (done < rounds + more_rounds and _spread(measured[_alone]) > CALM):
            # Each goes first in turn: what a run leaves behind falls on every contender alike.
            for contender in contenders[done % 3 :] + contenders[: done % 3]:
                measured[contender].append(contender(deployed))
            done += 1
    return _results(*measured.values())


def _results(alone: list[float], berth: list[float], echo: list[float]) -> list[Result]:
    """The lines of the report, from pods/s by round."""
    rounds = ", ".join(f"{a:.1f}/{b:.1f}/{e:.1f}" for a, b, e in zip(alone, berth, echo, strict=True))
    note = f"alone/Berth/echo: {rounds}"
    spread = _spread(alone)
    if spread > CALM:
        note += f"; equal runs alone differ by {spread:.0%}, so the machine itself was not calm"
    where = f"{NODES} nodes x 8 devices, {PODS} claim pods"
    return [
        at_least(f"pods/s with Berth / alone, {where}", _ratio(berth, alone), "ratio", 0.95, note),
        figure("pods/s with an extender that echoes / alone", _ratio(echo, alone), "ratio"),
        figure("pods/s with Berth / with an extender that echoes", _ratio(berth, echo), "ratio"),
        figure("pods/s, kube-scheduler with Berth, median", median(berth), "pods/s"),
        figure("pods/s, kube-scheduler alone, median", median(alone), "pods/s"),
    ]


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return median(a / b for a, b in zip(ours, theirs, strict=True))


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


def _alone(deployed: Deployed) -> float:
    config = yaml.safe_load(deployed.scheduler_config(0))
    del config["extenders"]
    return _rate(deployed.cluster, yaml.safe_dump(config))


def _with_echo(deployed: Deployed) -> float:
    with echoing(deployed.tls / "berth" / "tls.crt", deployed.tls / "berth" / "tls.key") as port:
        return _rate(deployed.cluster, deployed.scheduler_config(port))


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
