"""The KubeSchedulerConfigurations that we ship, taken by the real kube-scheduler with real certificates."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.controlplane import objects
from tests.deploy.manifests import ALL, SECOND_SCHEDULER, scheduler_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.controlplane


def _on_this_machine(text: str, certificates: Path, url: str | None = None) -> Any:
    """The file with the paths of this machine's certificates, and Berth's address where one is given."""
    config = yaml.safe_load(text)
    (extender,) = config["extenders"]
    extender["tlsConfig"] = {
        "caFile": str(certificates / "ca.crt"),
        "certFile": str(certificates / "scheduler" / "tls.crt"),
        "keyFile": str(certificates / "scheduler" / "tls.key"),
    }
    if url is not None:
        extender["urlPrefix"] = url
    return config


class _Recorder(http.server.ThreadingHTTPServer):
    """Takes the scheduler's calls over mutual TLS and lets every node pass."""

    def __init__(self, certificates: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / "ca.crt"))
        context.load_cert_chain(certificates / "berth" / "tls.crt", certificates / "berth" / "tls.key")
        context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.calls: list[tuple[str, dict[str, Any]]] = []


class _Answer(http.server.BaseHTTPRequestHandler):
    server: _Recorder
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls.append((self.path, body))
        answer: Any = []
        if self.path == "/extender/filter":
            answer = {"NodeNames": body["NodeNames"], "FailedNodes": {}, "Error": ""}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def recorder(certificates: Path) -> Iterator[_Recorder]:
    """A listening recorder."""
    server = _Recorder(certificates)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("name", ALL)
def test_the_real_scheduler_starts_with_the_file(
    deploy_cluster: ControlPlane, certificates: Path, name: str
) -> None:
    config = _on_this_machine(scheduler_config(name), certificates)
    deploy_cluster.start_scheduler(yaml.safe_dump(config), name="shipped")  # ready, or it raises
    deploy_cluster.stop_scheduler("shipped")


def test_the_real_scheduler_calls_over_mutual_tls_with_names_only(
    deploy_cluster: ControlPlane, certificates: Path, recorder: _Recorder
) -> None:
    url = f"https://localhost:{recorder.server_address[1]}/extender"
    config = _on_this_machine(scheduler_config(SECOND_SCHEDULER), certificates, url)
    admin = deploy_cluster.client()
    for node in ("one", "two"):
        objects.register_node(admin, objects.cpu_node(node))
    namespace = deploy_cluster.create_namespace("called")
    deploy_cluster.start_scheduler(yaml.safe_dump(config), name="shipped")
    try:
        pod = objects.pod("first", namespace=namespace, scheduler="berth-scheduler")
        admin.create(pod)
        bound = admin.wait("v1", "Pod", "first", lambda each: bool(each["spec"].get("nodeName")), namespace)
    finally:
        deploy_cluster.stop_scheduler("shipped")
    assert bound["spec"]["nodeName"] in {"one", "two"}
    ours = [(path, body) for path, body in recorder.calls if body["Pod"]["metadata"]["name"] == "first"]
    assert [path for path, _ in ours] == ["/extender/filter", "/extender/prioritize"]
    for _, body in ours:
        assert sorted(body["NodeNames"]) == ["one", "two"]
        assert body["Nodes"] is None
