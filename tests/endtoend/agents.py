"""Node agents as the DaemonSet runs them, but for the kubelet: processes with a Pod and a fake NVML each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import yaml

from tests.controlplane import objects
from tests.deploy import manifests
from tests.fake_nvml.fakenvml import H100, State, Value

if TYPE_CHECKING:
    from tests.endtoend.replica import Deployed, Replica

NAMESPACE = "berth-agent"
HEARTBEAT_S = 1.0
_QUICK = {
    "pollSeconds": 0.2,
    "processesSeconds": 0.5,
    "eventGapSeconds": 0.05,
    "eventWaitMilliseconds": 100,
    "firstDeadlineSeconds": 20.0,
    "deadlineSeconds": 1.0,
    "publishGraceSeconds": 2.0,
    "reapSeconds": 1.0,
    "restartMinSeconds": 0.1,
    "restartMaxSeconds": 0.5,
    "heartbeatSeconds": HEARTBEAT_S,
    "sendGapSeconds": 0.05,
    "sendBackoffMaxSeconds": 0.5,
    "resolveSeconds": 1.0,
}


def uuid_of(node: str, index: int) -> str:
    """The uuid that the node's slice has for a GPU."""
    uuid: str = objects.gpu_device(node, index)["attributes"]["uuid"]["string"]
    return uuid


@dataclass
class Agent:
    """One node: its Pod, its token, its fake driver, its process."""

    node: str
    gpus: State
    token: str
    config: Path
    log: Path
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    _readers: list[psutil.Process] = field(default_factory=list)

    def start(self) -> None:
        """Start the process."""
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "extender", "agent", "--config", str(self.config)],
                env={**os.environ, **self.environ},
                stdout=out,
                stderr=out,
                cwd=manifests.ROOT,
            )

    def stop(self) -> None:
        """End it and its reader, which may hang."""
        if self.process is None or self.process.poll() is not None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            self._readers += psutil.Process(self.process.pid).children()
        self.process.kill()
        self.process.wait(10)
        for reader in self._readers:
            with contextlib.suppress(psutil.NoSuchProcess):
                reader.kill()


class Agents:
    """The agents of a test, made from the DaemonSet's template."""

    def __init__(self, deployed: Deployed, library: Path, folder: Path) -> None:
        self._deployed = deployed
        self._library = library
        self._folder = folder
        self._made: list[Agent] = []
        built = manifests.build(manifests.TELEMETRY)
        (self._daemon,) = manifests.of_kind(built, "DaemonSet")

    def agent(self, node: str, gpus: int, replicas: list[Replica]) -> Agent:
        """An agent of a node (not started) that sends to these replicas."""
        home = self._folder / f"agent-{node}"
        home.mkdir(parents=True, exist_ok=True)
        state = State(home / "nvml.txt", H100, gpus)
        identity: dict[str, Value | None] = {}
        for index in range(gpus):
            identity[f"gpu{index}.uuid"] = uuid_of(node, index)
            bus = objects.gpu_device(node, index)["attributes"]["resource.kubernetes.io/pciBusID"]["string"]
            identity[f"gpu{index}.pci"] = f"0000{bus}"
        state.put(identity)
        pod = self._pod(node)
        token = self._deployed.cluster.service_account_token(
            NAMESPACE, "berth-agent", audiences=["berth"], pod=pod
        )
        (home / "token").write_text(token)
        config = yaml.safe_load((manifests.DEPLOY / "components/agent/files/agent.yaml").read_text())
        config |= {
            **_QUICK,
            "target": "https://localhost:8443",
            "addresses": [f"127.0.0.1:{replica.port}" for replica in replicas],
            "tokenFile": str(home / "token"),
            "caFile": str(self._deployed.tls / "ca.crt"),
            "listenHost": "127.0.0.1",
            "listenPort": 0,
            "stateDir": str(home),
        }
        path = home / "agent.yaml"
        path.write_text(yaml.safe_dump(config))
        environ = {**state.environment(self._library), "BERTH_AGENT__NODE_NAME": node}
        made = Agent(node, state, token, path, home / "log.jsonl", environ)
        self._made.append(made)
        return made

    def close(self) -> None:
        """End all and remove their Pods."""
        for agent in self._made:
            agent.stop()
        self._deployed.admin.delete_all("v1", "Pod", NAMESPACE)

    def _pod(self, node: str) -> dict[str, Any]:
        template = self._daemon["spec"]["template"]
        runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
        self._deployed.admin.apply({**runtime, "metadata": {"name": "nvidia"}})
        meta = {"generateName": "berth-agent-", "namespace": NAMESPACE, "labels": {"test": "agent"}}
        spec = {**template["spec"], "nodeName": node}
        return self._deployed.admin.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        )
