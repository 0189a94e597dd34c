"""Replicas of Berth as the Deployment runs them, but for the kubelet: processes with a Pod object each.

Identity, settings, certificates and rights are those of deploy/; a small thread plays the kubelet's probe.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tests.controlplane.processes import free_ports
from tests.deploy import manifests
from tests.deploy.manifests import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controlplane.client import ApiClient
    from tests.controlplane.cluster import ControlPlane
    from tests.endtoend.forwarder import Forwarder

_STARTS_WITHIN_S = 60.0
_FIRST_PROBES_S = 0.25  # until it is ready: no test waits longer for that than it must
SYSTEM_NODE = "system-0"


@dataclass
class Replica:
    """One process and its Pod."""

    name: str
    port: int
    environ: dict[str, str]
    config: Path
    log: Path
    tls: Path
    admin: ApiClient
    address: str
    probe_period: float
    """Of the readiness probe, in seconds, once it is ready."""
    process: subprocess.Popen[bytes] | None = None
    _probe: threading.Thread | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Start the process; its Pod exists."""
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "extender", "serve", "--config", str(self.config)],
                env={**os.environ, **self.environ},
                stdout=out,
                stderr=out,
                cwd=manifests.ROOT,
            )
        self._stopping.clear()
        self._probe = threading.Thread(target=self._play_kubelet, daemon=True)
        self._probe.start()

    def kill(self, *, noticed: bool = True) -> None:
        """End it without a word (SIGKILL); not `noticed`: its Pod stays Ready, as when its node died."""
        self._end(signal_kill=True, noticed=noticed)

    def terminate(self) -> None:
        """Tell it to end (SIGTERM), without waiting; `stop` waits."""
        assert self.process is not None
        self.process.terminate()

    def stop(self) -> None:
        """End it by SIGTERM."""
        self._end(signal_kill=False, noticed=True)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Halt the process meanwhile (SIGSTOP), as a machine that is suspended."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def wait_ready(self, seconds: float = _STARTS_WITHIN_S) -> None:
        """Wait until /readyz says yes."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.ready():
                return
            assert self.process is not None
            assert self.process.poll() is None, self.log_text()[-3000:]
            time.sleep(0.05)
        raise TimeoutError(f"{self.name} is not ready: {self.log_text()[-3000:]}")

    def ready(self) -> bool:
        """Whether /readyz answers 200."""
        with contextlib.suppress(httpx.HTTPError), self.http() as http:
            return http.get("/readyz").status_code == 200
        return False

    def leads(self) -> bool:
        """Whether it answers kube-scheduler: it holds the Lease and has synced in this term."""
        asked = {"Pod": {"metadata": {"name": "x"}, "spec": {"containers": []}}, "NodeNames": ["x"]}
        with contextlib.suppress(httpx.HTTPError), self.http() as http:
            return not http.post("/extender/filter", json=asked).json().get("Error")
        return False

    def http(self, token: str | None = None, port: int | None = None) -> httpx.Client:
        """A client that trusts the deployment's CA and shows the scheduler's certificate.

        `port`: where to connect in place of the replica's own port.
        """
        headers = {"authorization": f"Bearer {token}"} if token else {}
        url = f"https://127.0.0.1:{port or self.port}"
        return httpx.Client(base_url=url, verify=self._trust, headers=headers, timeout=10, trust_env=False)

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.tls / "ca.crt"))
        context.load_cert_chain(self.tls / "scheduler" / "tls.crt", self.tls / "scheduler" / "tls.key")
        return context

    def log_text(self) -> str:
        """Everything that it wrote."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def log_lines(self) -> list[dict[str, Any]]:
        """Its JSON log lines."""
        lines = []
        for line in self.log_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                lines.append(json.loads(line))
        return lines

    def metrics(self) -> dict[str, float]:
        """Its metrics, by name and labels as they are written: `berth_leader`, `x{kind="Pod"}`."""
        with self.http() as http:
            lines = http.get("/metrics").raise_for_status().text.splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def decisions(self, token: str, namespace: str) -> dict[str, dict[str, Any]]:
        """The decision record by pod name, for pods of one namespace."""
        with self.http(token) as http:
            answer = http.get("/api/v1/decisions", params={"limit": 1000}).raise_for_status()
        rows = answer.json()["decisions"]
        return {row["podName"]: row for row in rows if row["podNamespace"] == namespace}

    def _end(self, *, signal_kill: bool, noticed: bool) -> None:
        self._stopping.set()
        if self._probe is not None:
            self._probe.join(5)
        if self.process is not None and self.process.poll() is None:
            if signal_kill:
                self.process.kill()
            else:
                self.process.terminate()
            self.process.wait(30)
        if noticed:
            with contextlib.suppress(Exception):  # the API server may be away
                self._set_ready(ready=False)

    def _play_kubelet(self) -> None:
        """Probe /readyz and write the condition, as a kubelet does."""
        said: bool | None = None
        while not self._stopping.wait(self.probe_period if said else _FIRST_PROBES_S):
            ready = self.ready()
            if ready != said:
                with contextlib.suppress(Exception):  # the API server may be away: said at the next probe
                    self._set_ready(ready=ready)
                    said = ready

    def _set_ready(self, *, ready: bool) -> None:
        word = "True" if ready else "False"
        status = {
            "phase": "Running",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [{"type": kind, "status": word} for kind in ("Ready", "ContainersReady")],
        }
        self.admin.patch("v1", "Pod", self.name, {"status": status}, NAMESPACE, subresource="status")


class Deployed:
    """deploy/ applied to a control plane, and replicas made from its Deployment's template."""

    def __init__(self, cluster: ControlPlane, folder: Path, kustomization: str = manifests.BASE) -> None:
        self.cluster = cluster
        self.admin = cluster.client()
        self.folder = folder
        self.tls = folder / "tls"
        self.replicas: list[Replica] = []
        self._objects = manifests.build(kustomization)
        self._kustomization = kustomization

    def apply(self) -> None:
        """Apply all but the Deployments and DaemonSets: there is no kubelet that could run them."""
        for obj in self._objects:
            if obj["kind"] not in {"Deployment", "DaemonSet"}:
                self.admin.apply(obj)
        subprocess.run(
            [str(manifests.DEPLOY / "make-certificates"), str(self.tls), "127.0.0.1"],
            check=True,
            timeout=60,
        )

    def wait_led(self, forwarder: Forwarder, name: str, seconds: float = 30.0) -> float:
        """Wait until the Service leads to replica `name`; how long it took, in seconds."""
        began = time.monotonic()
        while forwarder.target != name:
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"the Service leads to {forwarder.target}, not to {name}")
            time.sleep(0.05)
        return time.monotonic() - began

    def port_of(self, name: str) -> int | None:
        """The port of the replica whose Pod has this name."""
        return next((replica.port for replica in self.replicas if replica.name == name), None)

    def replica(self, name: str, **settings: dict[str, Any]) -> Replica:
        """Make a Pod from the Deployment's template, and its process (not started).

        `settings` are merged over deploy/base/files/berth.yaml, section by section.
        """
        template = next(
            o for o in self._objects if o["kind"] == "Deployment" and o["metadata"]["name"] == "berth"
        )
        body = template["spec"]["template"]
        meta = {"name": name, "namespace": NAMESPACE, "labels": body["metadata"]["labels"]}
        spec = {**body["spec"], "nodeName": SYSTEM_NODE}
        for volume in spec.get("volumes", ()):
            volume.get("secret", {}).update(optional=True)
        pod = self.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        token = self.cluster.service_account_token(NAMESPACE, "berth", pod=pod)
        (port,) = free_ports(1)
        home = self.folder / name
        home.mkdir(parents=True, exist_ok=True)
        files = manifests.DEPLOY / "base" / "files"
        text = (files / "berth.yaml").read_text().replace("/etc/berth/policies", str(files / "policies"))
        config = yaml.safe_load(text)
        config["server"].update(host="127.0.0.1", port=port)
        config["server"]["tls"].update(
            certFile=str(self.tls / "berth" / "tls.crt"),
            keyFile=str(self.tls / "berth" / "tls.key"),
            clientCaFile=str(self.tls / "ca.crt"),
        )
        config["kube"]["kubeconfig"] = str(self.cluster.kubeconfig(token=token))
        policies = manifests.DEPLOY / "base" / "files" / "policies"
        config["telemetry"]["healthTable"] = str(policies / "health.yaml")
        for section, values in settings.items():
            config.setdefault(section, {}).update(values)
        path = home / "berth.yaml"
        path.write_text(yaml.safe_dump(config))
        made = Replica(
            name=name,
            port=port,
            environ={"POD_NAME": name, "POD_NAMESPACE": NAMESPACE},
            config=path,
            log=home / "log.jsonl",
            tls=self.tls,
            admin=self.admin,
            address=f"192.0.2.{10 + len(self.replicas)}",
            probe_period=body["spec"]["containers"][0]["readinessProbe"]["periodSeconds"],
        )
        self.replicas.append(made)
        return made

    def scheduler_config(self, port: int) -> str:
        """The kustomization's KubeSchedulerConfiguration with this machine's address and files."""
        config = yaml.safe_load(manifests.scheduler_config(self._kustomization))
        (extender,) = config["extenders"]
        extender["urlPrefix"] = f"https://127.0.0.1:{port}/extender"
        extender["tlsConfig"].update(
            caFile=str(self.tls / "ca.crt"),
            certFile=str(self.tls / "scheduler" / "tls.crt"),
            keyFile=str(self.tls / "scheduler" / "tls.key"),
        )
        text: str = yaml.safe_dump(config)
        return text

    def extender(self) -> dict[str, Any]:
        """The extender of the kustomization's KubeSchedulerConfiguration, as shipped."""
        (extender,) = yaml.safe_load(manifests.scheduler_config(self._kustomization))["extenders"]
        assert isinstance(extender, dict)
        return extender

    def turn_vetoes(self, value: str | None) -> None:
        """Write `vetoes` of the ConfigMap `berth-safety`, as a person would, or take it away."""
        self.admin.patch("v1", "ConfigMap", "berth-safety", {"data": {"vetoes": value}}, NAMESPACE)

    def reader_token(self) -> str:
        """A token for the read API: of a ServiceAccount that is bound to ClusterRole berth-reader."""
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "reader", "namespace": NAMESPACE},
        }
        self.admin.apply(account)
        self.admin.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "tests-reader"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "berth-reader",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": NAMESPACE}],
            }
        )
        return self.cluster.service_account_token(NAMESPACE, "reader", audiences=["berth"])

    def close(self) -> None:
        """End every replica and remove its Pod."""
        for replica in self.replicas:
            replica.stop()
            with contextlib.suppress(Exception):  # likewise, or a test has removed the Pod
                self.admin.delete("v1", "Pod", replica.name, NAMESPACE)
