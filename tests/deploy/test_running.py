"""Berth runs with the shipped settings, rights and certificates, against a real API server."""

from __future__ import annotations

import ssl
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from tests.controlplane.processes import free_ports
from tests.deploy.manifests import DEPLOY, NAMESPACE, ROOT, Applier, build, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.controlplane

_READY_S = 60.0


class Running:
    """One replica: its process, its address, and clients with and without a certificate."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, certificates: Path, log: Path) -> None:
        self.process = process
        self.log = log
        self._url = url
        self._certificates = certificates

    def client(self, *, certificate: bool) -> httpx.Client:
        """A client that trusts the CA and shows the scheduler's certificate, or none."""
        context = ssl.create_default_context(cafile=str(self._certificates / "ca.crt"))
        if certificate:
            scheduler = self._certificates / "scheduler"
            context.load_cert_chain(scheduler / "tls.crt", scheduler / "tls.key")
        return httpx.Client(base_url=self._url, verify=context, trust_env=False, timeout=10.0)


def _pod(name: str) -> dict[str, Any]:
    (deployment,) = (each for each in of_kind(build("base"), "Deployment"))
    template = deployment["spec"]["template"]
    meta = {**template["metadata"], "name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


@pytest.fixture(scope="module")
def running(
    deploy_cluster: ControlPlane,
    applied: Applier,
    certificates: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """A replica outside the cluster that acts as the Pod `berth-itself` with the ServiceAccount's token."""
    folder = tmp_path_factory.mktemp("berth")
    pod = applied.create(_pod("berth-itself"))
    (port,) = free_ports(1)
    config = yaml.safe_load((DEPLOY / "base" / "files" / "berth.yaml").read_text())
    config["server"] |= {"host": "127.0.0.1", "port": port}
    config["server"]["tls"] = {
        "certFile": str(certificates / "berth" / "tls.crt"),
        "keyFile": str(certificates / "berth" / "tls.key"),
        "clientCaFile": str(certificates / "ca.crt"),
    }
    token = deploy_cluster.service_account_token(NAMESPACE, "berth", pod=pod)
    config["kube"]["kubeconfig"] = str(deploy_cluster.kubeconfig(token=token))
    config["policy"]["file"] = str(ROOT / "policies" / "default.yaml")
    config["telemetry"]["healthTable"] = str(ROOT / "policies" / "health.yaml")
    path = folder / "berth.yaml"
    path.write_text(yaml.safe_dump(config))
    log = folder / "berth.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "extender", "serve", "--config", str(path)],
            stdout=output,
            stderr=output,
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "POD_NAME": "berth-itself", "POD_NAMESPACE": NAMESPACE},
        )
    running = Running(process, f"https://localhost:{port}", certificates, log)
    try:
        _wait_until_ready(running)
        yield running
    finally:
        process.kill()
        process.wait(10)


def _wait_until_ready(running: Running) -> None:
    deadline = time.monotonic() + _READY_S
    with running.client(certificate=False) as client:
        while True:
            assert running.process.poll() is None, running.log.read_text()
            try:
                if client.get("/readyz").status_code == 200:
                    return
            except httpx.ConnectError:
                pass  # it does not listen yet
            assert time.monotonic() < deadline, running.log.read_text()
            time.sleep(0.1)


def test_it_takes_the_lease_and_the_label_with_the_rights_it_has(
    deploy_cluster: ControlPlane, running: Running
) -> None:
    admin = deploy_cluster.client()
    labelled = admin.wait(
        "v1",
        "Pod",
        "berth-itself",
        lambda each: each["metadata"]["labels"].get("berth.scheduler/leader") == "true",
        NAMESPACE,
        seconds=30.0,
    )
    assert labelled["metadata"]["labels"]["app.kubernetes.io/name"] == "berth"
    lease = admin.get("coordination.k8s.io/v1", "Lease", "berth", NAMESPACE)
    assert lease["spec"]["holderIdentity"].startswith("berth-itself")
    assert "orbidden" not in running.log.read_text()


def test_probes_and_metrics_need_no_certificate(running: Running) -> None:
    with running.client(certificate=False) as client:
        assert [client.get(path).status_code for path in ("/livez", "/readyz", "/metrics")] == [200] * 3


def test_the_verbs_answer_only_a_client_with_a_certificate(running: Running) -> None:
    body = {
        "Pod": {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}},
        "Nodes": None,
        "NodeNames": ["a", "b"],
    }
    with running.client(certificate=False) as client:
        assert client.post("/extender/filter", json=body).status_code == 403
    with running.client(certificate=True) as client:
        answer = client.post("/extender/filter", json=body)
    assert answer.status_code == 200
    assert answer.json()["NodeNames"] == ["a", "b"]


def test_the_read_api_asks_the_cluster_who_may_read(deploy_cluster: ControlPlane, running: Running) -> None:
    reader = deploy_cluster.create_namespace("readers")
    token = deploy_cluster.service_account_token(reader, "default", audiences=["berth"])
    headers = {"Authorization": f"Bearer {token}"}
    with running.client(certificate=False) as client:
        assert client.get("/api/v1/fleet").status_code == 401
        assert client.get("/api/v1/fleet", headers=headers).status_code == 403
        deploy_cluster.client().apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "readers-read-berth"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "berth-reader",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": reader}],
            }
        )
        deadline = time.monotonic() + 30
        while (status := client.get("/api/v1/fleet", headers=headers).status_code) == 403:
            assert time.monotonic() < deadline
            time.sleep(0.5)
    assert status == 200


def test_sigterm_ends_it_cleanly_and_gives_the_lease_back(
    deploy_cluster: ControlPlane, running: Running
) -> None:
    running.process.terminate()
    assert running.process.wait(30) == 0, running.log.read_text()
    lease = deploy_cluster.client().get("coordination.k8s.io/v1", "Lease", "berth", NAMESPACE)
    assert not lease["spec"].get("holderIdentity")
