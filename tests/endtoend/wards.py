"""A small fleet with node agents, a leader with quick settings, and kube-scheduler asking it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tests.controlplane import objects
from tests.deploy import manifests
from tests.endtoend.agents import Agents
from tests.endtoend.fleet import DRA, Fleet, conditions
from tests.endtoend.forwarder import Forwarder
from tests.endtoend.replica import SYSTEM_NODE, Deployed, Replica

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.controlplane.cluster import ControlPlane
    from tests.endtoend.agents import Agent
    from tests.endtoend.fleet import Object

FIRST, SECOND = "n-a", "n-b"
QUIET_S = 2.0
SILENCE_S = 4.0
PATIENCE_S = 30.0
GPUS = 2

Settings = dict[str, dict[str, Any]]


def quick_table(folder: Path) -> Path:
    """The shipped health table with quiet times of seconds."""
    table = yaml.safe_load((manifests.ROOT / "policies" / "health.yaml").read_text())
    table |= {"quietSeconds": QUIET_S, "silenceSeconds": SILENCE_S}
    for rules in table["xids"].values():
        if "quietSeconds" in rules:
            rules["quietSeconds"] = QUIET_S
    path = folder / "health.yaml"
    path.write_text(yaml.safe_dump(table))
    return path


def until(what: Callable[[], Any], seconds: float = PATIENCE_S, said: Callable[[], object] = str) -> Any:
    """The first true answer; fails with what `said` tells."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end, said()
        time.sleep(0.05)


class Wards:
    """Two nodes of two GPUs with an agent each, and replicas of Berth."""

    def __init__(self, plane: ControlPlane, folder: Path, library: Path, settings: Settings) -> None:
        self._stack = contextlib.ExitStack()
        self._table = quick_table(folder)
        self._settings = settings
        self.deployed = Deployed(plane, folder, manifests.TELEMETRY)
        self.admin = self.deployed.admin
        self.forwarder = Forwarder(self.admin, manifests.NAMESPACE, "berth", self.deployed.port_of)
        self.fleet = Fleet(plane)
        self._plane = plane
        self._agents = Agents(self.deployed, library, folder)
        self.agents: dict[str, Agent] = {}
        self.leader: Replica

    def open(self) -> None:
        """Apply the manifests, register the nodes, start everything."""
        plane = self._plane
        self.deployed.apply()
        self._stack.callback(self.deployed.close)
        self.admin = self.deployed.admin
        for document in yaml.safe_load_all(
            (manifests.DEPLOY / "components/quarantine/rbac.yaml").read_text()
        ):
            self.admin.apply(document)
        if self.admin.find("v1", "Node", SYSTEM_NODE) is None:
            node = objects.cpu_node(SYSTEM_NODE)
            node["spec"]["taints"] = [{"key": "system", "value": "only", "effect": "NoSchedule"}]
            objects.register_node(self.admin, node)
        self._stack.callback(self.fleet.remove)
        self.admin.apply(objects.device_class())
        for name in (FIRST, SECOND):
            objects.register_gpu_node(self.admin, name, gpus=GPUS)
            self.fleet.forget(name)
        self.fleet.template("one")
        self._stack.enter_context(self.forwarder)
        self.leader = self.replica("berth-0")
        self.deployed.wait_led(self.forwarder, self.leader.name)
        plane.start_scheduler(self.deployed.scheduler_config(self.forwarder.port))
        self._stack.callback(plane.stop_scheduler)
        self._stack.callback(self._agents.close)
        self.start_agents()

    def replica(self, name: str) -> Replica:
        """Another replica, started and ready."""
        telemetry = {
            "healthTable": str(self._table),
            "staleAfterSeconds": 3.0,
            "absentAfterSeconds": 6.0,
        }
        made = self.deployed.replica(name, **{**self._settings, "telemetry": telemetry})
        made.start()
        made.wait_ready()
        return made

    def start_agents(self, *replicas: Replica) -> None:
        """Start the agents and wait until their devices are known."""
        for name in (FIRST, SECOND):
            self.agents[name] = self._agents.agent(name, GPUS, list(replicas) or [self.leader])
            self.agents[name].start()
        for replica in replicas or (self.leader,):
            self.wait_metric("berth_telemetry_devices", 2 * GPUS, replica)

    def restart_agents(self, *replicas: Replica) -> None:
        """The agents anew, sending to these replicas."""
        self._agents.close()
        self.start_agents(*replicas)

    def close(self) -> None:
        """Take everything away."""
        self._stack.close()

    # ---- pods

    def pod(self, name: str, *, prefer: str = "", only: str = "", need: str = "") -> Object:
        """A pod for one GPU."""
        spec: Object = {}
        if only:
            spec["nodeSelector"] = {"kubernetes.io/hostname": only}
        if prefer:
            term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [prefer]}
            choice = [{"weight": 100, "preference": {"matchExpressions": [term]}}]
            spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": choice}}
        made = self.fleet.pod(name, templates=["one"], spec=spec)
        if need:
            made["metadata"].setdefault("annotations", {})["berth.scheduler/memory-need"] = need
        return made

    def place(self, name: str, seconds: float = PATIENCE_S, **how: str) -> str:
        """Create a pod and wait for its device, as node/device."""
        self.fleet.create([self.pod(name, **how)])
        return self.placed(name, seconds)

    def placed(self, name: str, seconds: float = PATIENCE_S) -> str:
        """Wait until the pod has a node; its device as node/device."""
        pod = self.fleet.wait_bound([name], seconds)[name]
        ((*_, device),) = self.fleet.devices_of(pod, self.fleet.claims())
        return str(device).partition("/")[2]

    def clear(self) -> None:
        """Remove every pod, and wait until no device is held."""
        self.admin.delete_all("v1", "Pod", self.fleet.namespace)
        until(lambda: not self.fleet.claims())

    def message(self, name: str) -> str:
        """What kube-scheduler says of a pod that it could not place."""
        found = (c for c in conditions(self.fleet.pods()[name]) if c["type"] == "PodScheduled")
        return next((c.get("message", "") for c in found if c["status"] == "False"), "")

    @contextlib.contextmanager
    def vetoes_off(self) -> Iterator[None]:
        """Throw the switch, and put it back."""
        self.deployed.turn_vetoes("off")
        try:
            self.wait_open()
            yield
        finally:
            self.deployed.turn_vetoes(None)

    # ---- what Berth knows

    def refusals(self, need: str = "", replica: Replica | None = None) -> dict[str, str]:
        """Texts by node of what filter refuses to a pod for one GPU that exists nowhere."""
        resources = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
        notes = {"berth.scheduler/memory-need": need} if need else {}
        pod = {
            "metadata": {"name": "asking", "namespace": "default", "annotations": notes},
            "spec": {
                "schedulerName": "default-scheduler",
                "containers": [{"name": "main", "resources": resources}],
            },
        }
        asked = {"Pod": pod, "NodeNames": [FIRST, SECOND]}
        with (replica or self.leader).http() as http:
            answer = http.post("/extender/filter", json=asked).json()
        return {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}

    def wait_refused(self, reason: str, need: str = "", seconds: float = PATIENCE_S) -> float:
        """Wait until the first node is refused for this reason; how long it took."""
        began = time.monotonic()
        until(
            lambda: self.refusals(need).get(FIRST, "").startswith(f"{reason}:"),
            seconds,
            lambda: (self.refusals(need), self.leader.log_text()[-2000:]),
        )
        return time.monotonic() - began

    def wait_known(self, devices: int) -> None:
        """Wait until the leader, which may have just started, leads and knows so many unfit devices."""
        until(self.leader.leads)
        until(lambda: _unfit(self.leader.metrics()) == devices, said=lambda: self.leader.log_text()[-2000:])

    def wait_open(self, need: str = "", replica: Replica | None = None) -> None:
        """Wait until no node is refused."""
        until(lambda: not self.refusals(need, replica), said=lambda: self.refusals(need, replica))

    def wait_metric(self, name: str, value: float, replica: Replica | None = None) -> None:
        """Wait until a metric has this value."""
        one = replica or self.leader
        until(
            lambda: one.metrics().get(name) == value,
            said=lambda: (one.metrics().get(name), one.log_text()[-2000:]),
        )

    def node_events(self, reason: str) -> list[Object]:
        """Berth's events about the first node with this reason."""
        found = self.admin.list_all("events.k8s.io/v1", "Event", "default")
        return [
            e
            for e in found
            if (e["regarding"]["name"], e["reason"]) == (FIRST, reason) and e["type"] == "Warning"
        ]

    def rules(self) -> dict[str, Object]:
        """Every DeviceTaintRule by name."""
        return {r["metadata"]["name"]: r for r in self.admin.list_all(DRA, "DeviceTaintRule")}


def _unfit(metrics: Mapping[str, float]) -> float:
    return sum(value for name, value in metrics.items() if name.startswith("berth_telemetry_unfit_devices{"))


def post(
    replica: Replica,
    token: str,
    body: bytes,
    kind: str = "application/json",
) -> int:
    """Send a sample; the status."""
    with replica.http(token) as http:
        try:
            answer = http.post("/telemetry/v1/samples", content=body, headers={"content-type": kind})
        except httpx.WriteError:
            return 413  # the connection was closed on what is too long
    return int(answer.status_code)


def wards(plane: ControlPlane, folder: Path, library: Path, settings: Settings) -> Iterator[Wards]:
    """For a fixture."""
    made = Wards(plane, folder, library, settings)
    try:
        made.open()
        yield made
    finally:
        made.close()
