"""The service on a fleet in memory, as a process: every route, shadow mode, the policy file, its end."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from tests.wiring.process import ROOT, Service, command, serving

NODES = ["h100-a", "h100-b", "h100-c", "l4-a", "plugin-a", "cpu-a", "cpu-b"]
CPU_POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u-1"},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c"}]},
}
GPU_POD = {
    "metadata": {"name": "gpu", "namespace": "default", "uid": "u-2"},
    "spec": {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared-l4"}],
    },
}
POLICY = {
    "apiVersion": "berth.scheduler/v1alpha1",
    "kind": "Policy",
    "metadata": {"name": "test"},
    "judges": {"pack": 3},
}


def args(pod: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {"Pod": pod, "Nodes": None, "NodeNames": names}


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("bundled"), "--embedded") as service:
        yield service


@pytest.fixture
def http(bundled: Service) -> Iterator[httpx.Client]:
    with bundled.http() as client:
        yield client


def test_filter_passes_what_it_was_offered(http: httpx.Client) -> None:
    answer = http.post("/extender/filter", json=args(GPU_POD, NODES)).json()
    assert (answer["NodeNames"], answer["Error"]) == (NODES, "")


def test_prioritize_keeps_a_pod_without_accelerators_off_their_nodes(http: httpx.Client) -> None:
    ranked = http.post("/extender/prioritize", json=args(CPU_POD, NODES)).json()
    scores = {entry["Host"]: entry["Score"] for entry in ranked}
    assert max(scores, key=lambda host: scores[host]) in {"cpu-a", "cpu-b"}
    assert min(scores["cpu-a"], scores["cpu-b"]) > max(scores[name] for name in NODES[:5])


def test_preempt_returns_the_candidates(http: httpx.Client) -> None:
    victims = {"h100-a": {"Pods": [{"UID": "u-9"}], "NumPDBViolations": 0}}
    answer = http.post("/extender/preempt", json={"Pod": GPU_POD, "NodeNameToMetaVictims": victims})
    assert answer.status_code == 200
    assert list(answer.json()["NodeNameToMetaVictims"]) == ["h100-a"]


def test_bind_names_a_pod_that_is_not_there(http: httpx.Client) -> None:
    body = {"PodName": "nobody", "PodNamespace": "default", "PodUID": "u", "Node": "cpu-a"}
    assert "does not exist" in http.post("/extender/bind", json=body).json()["Error"]


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
def test_a_body_that_is_no_json_gets_an_answer_of_its_verb(http: httpx.Client, verb: str) -> None:
    answer = http.post(f"/extender/{verb}", content=b"{")
    assert answer.status_code == (400 if verb == "preempt" else 200)
    assert "Traceback" not in answer.text


def test_the_read_api_shows_fleet_nodes_decisions_and_gangs(http: httpx.Client) -> None:
    fleet = http.get("/api/v1/fleet").json()
    assert sorted(node["name"] for node in fleet["nodes"]) == sorted(NODES)
    assert len(http.get("/api/v1/nodes/h100-a").json()["devices"]) == 8
    assert http.get("/api/v1/nodes/nowhere").status_code == 404
    http.post("/extender/filter", json=args(GPU_POD, NODES))
    assert http.get("/api/v1/decisions").json()["decisions"][0]["podName"] == "gpu"
    assert http.get("/api/v1/gangs").json() == {"gangs": []}


def test_explain_names_the_judges_and_the_predicted_device(http: httpx.Client) -> None:
    explained = http.post("/api/v1/explain", json={"pod": GPU_POD, "nodes": ["l4-a"]}).json()
    [node] = explained["nodes"]
    assert node["predicted"][0]["device"].startswith("gpu.nvidia.com/l4-a/gpu-")
    # Other judges may abstain: this fleet has no telemetry.
    weights = {judge["judge"]: judge["weight"] for judge in node["judges"]}
    assert (weights["pack"], weights["pool"]) == (3, 5)


def test_probes_metrics_and_documentation_answer(http: httpx.Client) -> None:
    assert http.get("/livez").text == "ok"
    assert http.get("/readyz").json() == {"ready": True, "waiting": []}
    assert "/api/v1/fleet" in http.get("/openapi.json").json()["paths"]


def test_metrics_count_the_devices_and_tell_the_age_of_the_snapshot(http: httpx.Client) -> None:
    text = http.get("/metrics").text
    assert 'berth_inventory_devices{driver="gpu.nvidia.com",state="free"} 28.0' in text
    [age] = [line for line in text.splitlines() if line.startswith("berth_snapshot_age_seconds ")]
    assert 0 <= float(age.split()[1]) < 3600


@pytest.mark.slow
def test_a_made_up_fleet_of_any_size_is_served(tmp_path: Path) -> None:
    with serving(tmp_path, "--embedded", "--nodes", "44") as service, service.http() as http:
        fleet = http.get("/api/v1/fleet").json()
        assert fleet["nodeCount"] == 44
        assert sum(count["total"] for count in fleet["totals"]) == 8 * 40  # every eleventh has a plugin


@pytest.mark.slow
def test_a_fleet_of_ones_own_is_served_from_its_folder(tmp_path: Path) -> None:
    config = tmp_path / "berth.yaml"
    fleet = ROOT / "tests" / "sim" / "data" / "drivers"
    config.write_text(f"kube: {{source: embedded, fleetPath: {fleet}}}\napi: {{auth: false}}\n")
    with serving(tmp_path, "--config", str(config)) as service, service.http() as http:
        assert http.get("/readyz").status_code == 200


@pytest.mark.slow
def test_shadow_mode_passes_all_scores_0_and_records(tmp_path: Path) -> None:
    with serving(tmp_path, "--embedded", SCHEDULER__MODE="shadow") as service, service.http() as http:
        assert http.post("/extender/filter", json=args(GPU_POD, NODES)).json()["NodeNames"] == NODES
        ranked = http.post("/extender/prioritize", json=args(CPU_POD, NODES)).json()
        assert {entry["Score"] for entry in ranked} == {0}
        [decision] = http.get("/api/v1/decisions").json()["decisions"]
        assert decision["shadow"] is True
        assert "shadow mode" in http.post("/api/v1/explain", json={"pod": GPU_POD}).json()["note"]


@pytest.mark.slow
class TestPolicyFile:
    """policy.file is looked at every policy.reloadSeconds."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "policy.yaml"
        path.write_text(yaml.safe_dump(POLICY))
        return path

    @pytest.fixture
    def service(self, tmp_path: Path, path: Path) -> Iterator[Service]:
        with serving(
            tmp_path, "--embedded", POLICY__FILE=str(path), POLICY__RELOAD_SECONDS="0.05"
        ) as service:
            yield service

    @pytest.fixture
    def weights(self, service: Service) -> Callable[[], dict[str, float]]:
        """The weight by judge, as explain shows it."""

        def ask() -> dict[str, float]:
            with service.http() as http:
                explained = http.post("/api/v1/explain", json={"pod": GPU_POD}).json()
            return {judge["judge"]: judge["weight"] for judge in explained["nodes"][0]["judges"]}

        return ask

    def test_a_changed_file_changes_the_weights(
        self, service: Service, path: Path, weights: Callable[[], dict[str, float]]
    ) -> None:
        assert weights() == {"pack": 3}
        path.write_text(yaml.safe_dump({**POLICY, "judges": {"spread": 2, "pool": 1}}))
        service.wait_said("policy changed")
        assert weights() == {"spread": 2, "pool": 1}

    def test_a_broken_file_keeps_the_old_policy_and_is_named_once(
        self, service: Service, path: Path, weights: Callable[[], dict[str, float]]
    ) -> None:
        said = "the policy file can't be used; the policy stays as it was"
        path.write_text(yaml.safe_dump({**POLICY, "judges": {"pakc": 3}}))
        assert f"{path}: judges.pakc: no such judge" in service.wait_said(said)["fault"]
        assert weights() == {"pack": 3}
        path.unlink()
        assert "can't be read" in service.wait_said(said, 2)["fault"]
        path.write_text(yaml.safe_dump({**POLICY, "judges": {"pack": 9}}))
        service.wait_said("policy changed")
        assert weights() == {"pack": 9}
        assert len([line for line in service.lines() if line["event"] == said]) == 2


@pytest.mark.slow
class TestEnd:
    """What SIGTERM does, and what faults in files do."""

    def test_sigterm_finishes_an_open_request_and_ends_with_0(self, tmp_path: Path) -> None:
        body = b'{"Pod": {"metadata": {"name": "p"}}, "NodeNames": ["cpu-a"]}'
        with serving(tmp_path, "--embedded") as service:
            address = urlsplit(service.url)
            assert address.hostname is not None
            assert address.port is not None
            where = (address.hostname, address.port)
            with socket.create_connection(where, timeout=20) as open_request:
                open_request.sendall(
                    b"POST /extender/filter HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(body), body[:10])
                )
                assert open_request.recv(1000).startswith(b"HTTP/1.1 100")
                service.process.send_signal(signal.SIGTERM)
                _wait_refused(where)
                assert service.process.poll() is None
                open_request.sendall(body[10:])
                answer = b""
                while chunk := open_request.recv(10_000):
                    answer += chunk
            assert answer.startswith(b"HTTP/1.1 200")
            assert b'"cpu-a"' in answer
            assert service.process.wait(20) == 0

    def test_without_open_requests_it_ends_at_once(self, tmp_path: Path) -> None:
        with serving(tmp_path, "--embedded") as service:
            assert service.stop() == 0
            assert [line for line in service.lines() if line["level"] in {"error", "critical"}] == []

    @pytest.mark.parametrize(
        ("settings", "policy", "said"),
        [
            ("server: {port: x}\n", None, "berth.yaml:1: server.port: "),
            ("surprise: 1\n", None, "berth.yaml:1: surprise: unknown key"),
            ("", "{}", "policy.yaml: apiVersion: Field required"),
            ("", "[1", "policy.yaml: not YAML: "),
            ("", "[1]", "policy.yaml: a policy is a mapping"),
            ("", yaml.safe_dump({**POLICY, "judges": {"pack": -1}}), "policy.yaml: judges.pack: "),
            (
                "",
                yaml.safe_dump({**POLICY, "judges": {"luck": 1}}),
                "policy.yaml: judges.luck: no such judge",
            ),
            ("policy: {file: nowhere.yaml}\n", None, "nowhere.yaml: can't be read: "),
        ],
    )
    def test_a_fault_in_a_file_is_one_line_with_file_and_field_and_status_2(
        self, tmp_path: Path, settings: str, policy: str | None, said: str
    ) -> None:
        config = tmp_path / "berth.yaml"
        config.write_text(settings)
        if policy is not None:
            (tmp_path / "policy.yaml").write_text(policy)
            config.write_text(f"policy: {{file: {tmp_path / 'policy.yaml'}}}\n")
        arguments = command("serve", "--embedded", "--config", str(config))
        if "port" not in settings:
            arguments += ["--port", "0"]
        ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
        assert ended.returncode == 2
        [line] = ended.stderr.splitlines()
        assert said in line

    def test_a_port_that_is_taken_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            ended = subprocess.run(
                command("serve", "--embedded", "--port", port),
                capture_output=True,
                text=True,
                timeout=60,
                cwd=ROOT,
                check=False,
            )
        assert ended.returncode == 2
        assert f"server: can't listen on 127.0.0.1 port {port}" in ended.stderr
        assert "Traceback" not in ended.stderr


def _wait_refused(where: tuple[str, int]) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            socket.create_connection(where, timeout=1).close()
        except OSError:
            return
        time.sleep(0.02)
    raise TimeoutError("it still accepts connections")
