"""Cold sync of a large cluster from the local API server, and the memory of the replica then.

The replica runs under the deployed rights, certificates and settings. Timed is from the moment that it starts
listening, in the same step in which its reflectors ask for their first lists, until /readyz says that every
kind has been listed; the start of the interpreter is not in it. Memory is read once it leads (it has then
listed everything a second time) and has answered filter and prioritize for every node.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.loading import Body, load, stored
from bench.result import Result, at_most, figure
from extender.sim.generated import gpu_class, gpu_node, gpu_slice, node_name, pod
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.flags import Options
from tests.endtoend.fleet import DRA
from tests.endtoend.replica import Deployed, Replica

NODES = 5000
PODS = 10_000
SECONDS = 10.0
MEGABYTES = 600.0
PATIENCE_S = 180.0


def run() -> list[Result]:
    """Seconds and megabytes."""
    # Other controllers would go on writing to 5,000 nodes while we measure.
    options = Options(controller_manager_flags=["--controllers=serviceaccount-controller"])
    with tempfile.TemporaryDirectory() as folder, ControlPlane(options) as cluster:
        load(cluster, _bodies(cluster))
        deployed = Deployed(cluster, Path(folder))
        deployed.apply()
        replica = deployed.replica("berth-0")
        began = time.time()
        replica.start()
        try:
            synced = _wait_synced(replica)
            listening = _listening(replica)
            _ask(replica)
            resident, peak = (_memory(replica, field) for field in ("VmRSS", "VmHWM"))
            counted = replica.metrics()
        finally:
            deployed.close()
    held = {kind: int(counted[f'berth_inventory_objects{{kind="{kind}"}}']) for kind in ("Node", "Pod")}
    where = f"{NODES} nodes, {NODES} slices x 8 devices, {PODS} pods"
    note = f"ledger: {held}; from process start to ready {synced - began:.1f} s"
    return [
        at_most(f"cold sync, {where}", synced - listening, "s", SECONDS, note),
        at_most("resident memory then, leading, after both verbs on all nodes", resident, "MB", MEGABYTES),
        figure("largest resident memory until then", peak, "MB"),
    ]


def _bodies(cluster: ControlPlane) -> Iterator[Body]:
    slices = cluster.client().path(DRA, "ResourceSlice")
    yield stored(cluster.client().path(DRA, "DeviceClass"), gpu_class())
    for number in range(NODES):
        yield stored("/api/v1/nodes", gpu_node(number))
        yield stored(slices, gpu_slice(number, number % 20))
    for number in range(PODS):
        bound = pod(f"busy-{number}", node=node_name(number % NODES))
        yield stored("/api/v1/namespaces/default/pods", bound)


def _wait_synced(replica: Replica) -> float:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if replica.ready():
            return time.time()
        time.sleep(0.02)
    raise TimeoutError(replica.log_text()[-2000:])


def _listening(replica: Replica) -> float:
    (line,) = (line for line in replica.log_lines() if line["event"] == "listening")
    return datetime.fromisoformat(line["time"]).astimezone(UTC).timestamp()


def _ask(replica: Replica) -> None:
    """Both verbs, for a pod that asks for a GPU, on all nodes."""
    until = time.monotonic() + PATIENCE_S
    while not replica.leads():
        if time.monotonic() > until:
            raise TimeoutError(replica.log_text()[-2000:])
        time.sleep(0.1)
    resources = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
    asking = {
        "metadata": {"name": "asking", "namespace": "default"},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "resources": resources}],
        },
    }
    asked = {"Pod": asking, "NodeNames": [node_name(number) for number in range(NODES)]}
    with replica.http() as http:
        passed = http.post("/extender/filter", json=asked).raise_for_status().json()
        scores = http.post("/extender/prioritize", json=asked).raise_for_status().json()
    if len(passed["NodeNames"] or ()) != NODES or len(scores) != NODES:
        raise RuntimeError(f"not every node passed: {passed.get('Error')!r}")


def _memory(replica: Replica, field: str) -> float:
    """Megabytes (10^6 bytes), of /proc/PID/status."""
    assert replica.process is not None
    status = Path(f"/proc/{replica.process.pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6
