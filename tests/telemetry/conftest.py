"""The fake NVML library, the agent as a real process, and a replica that it sends to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from extender.api.telemetry import Device, Sample
from extender.inventory.health import HealthBook
from extender.inventory.health_table import parse_health_table
from extender.inventory.telemetry import Refusal, TelemetryStore
from extender.telemetry.agent.serving import build_server
from extender.telemetry.intake import Intake
from extender.telemetry.metrics import TelemetryMetrics
from extender.telemetry.receiver import NODE_CLAIM, Limits, ReceiverDeps, routes
from extender.verbs.views import Identity
from tests.fake_nvml.fakenvml import State, build

PATIENCE_S = 30.0
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading the system's trust for each client takes long
NODE = "n1"
ROOT = Path(__file__).resolve().parents[2]
_MAIN = """
import asyncio, sys
from pathlib import Path
from extender.telemetry.agent.run import run_agent
from extender.telemetry.agent.settings import AgentSettings
asyncio.run(run_agent(AgentSettings.model_validate_json(Path(sys.argv[1]).read_text())))
"""


async def until(what: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Return once `what` holds; fail when it does not within the patience."""
    end = time.monotonic() + patience_s
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


@dataclass
class Tokens:
    """A TokenAuthenticator that knows what it is told."""

    known: dict[str, Identity] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def admit(self, token: str, node: str, username: str = "system:serviceaccount:berth:agent") -> None:
        self.known[token] = Identity(username, extra={NODE_CLAIM: (node,)})

    async def authenticate(self, token: str, audience: str) -> Identity | None:
        self.asked.append((token, audience))
        return self.known.get(token)


@dataclass(frozen=True)
class KeepingIntake(Intake):
    """An intake that keeps the samples which it accepted."""

    accepted: list[Sample] = field(default_factory=list)

    def sample(self, sample: Sample, now: float) -> Refusal | None:
        refusal = super().sample(sample, now)
        if refusal is None:
            self.accepted.append(sample)
        return refusal


@dataclass
class Replica:
    """A replica's receiver behind a real server."""

    intake: KeepingIntake
    tokens: Tokens
    url: str = ""

    @property
    def samples(self) -> list[Sample]:
        return self.intake.accepted

    @property
    def last(self) -> Sample | None:
        return self.samples[-1] if self.samples else None

    def state(self) -> str:
        return str(self.last.driver.state) if self.last else ""

    def device(self, uuid: str) -> Device | None:
        return next((d for d in self.last.devices if d.uuid == uuid), None) if self.last else None

    def refused(self, why: str) -> float:
        return float(self.intake.metrics.refused.labels(why)._value.get())


def make_intake() -> KeepingIntake:
    table = parse_health_table((ROOT / "policies" / "health.yaml").read_text(), "policies/health.yaml")
    return KeepingIntake(
        TelemetryStore(), HealthBook(table), TelemetryMetrics(CollectorRegistry()), lambda _: None
    )


def plain_client() -> httpx.AsyncClient:
    """A client for plain HTTP on this machine."""
    return httpx.AsyncClient(trust_env=False, verify=NO_TLS, timeout=10)


@contextlib.asynccontextmanager
async def serving(app: Starlette, **options: Any) -> AsyncIterator[int]:
    """The app on a free port of the loopback interface; `options` are uvicorn's."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = build_server(app, "127.0.0.1", 0)
    server.config.timeout_graceful_shutdown = 10
    for name, value in options.items():
        setattr(server.config, name, value)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    await until(lambda: server.started)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, PATIENCE_S)
        listener.close()


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    here = Replica(make_intake(), Tokens())
    here.tokens.admit("good", NODE)
    deps = ReceiverDeps(here.intake, here.tokens, time.monotonic, limits=Limits(node_rate=1000.0))
    async with serving(Starlette(routes=list(routes(deps)))) as port:
        here.url = f"http://127.0.0.1:{port}"
        yield here


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def gpus(tmp_path: Path) -> State:
    return State(tmp_path / "state.txt")


class AgentProcess:
    """`run_agent` in a process of its own."""

    def __init__(self, settings: dict[str, Any], environment: dict[str, str], folder: Path) -> None:
        self.port = free_port()
        file = folder / "agent.json"
        file.write_text(json.dumps({**settings, "listen_port": self.port}))
        self.log = folder / "agent.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", _MAIN, str(file)],
                env={**os.environ, **environment},
                cwd=ROOT,
                stderr=log,
            )

    def readers(self) -> list[psutil.Process]:
        """The reader processes that are there, hung ones too."""
        try:
            children = psutil.Process(self._process.pid).children()
            return [c for c in children if c.status() != psutil.STATUS_ZOMBIE and _is_reader(c)]
        except psutil.NoSuchProcess:
            return []

    async def get(self, path: str) -> httpx.Response:
        async with plain_client() as client:
            return await client.get(f"http://127.0.0.1:{self.port}{path}", timeout=5)

    async def metric(self, line: str) -> float:
        """Value of a series of the agent's metrics, 0 when it is not there."""
        text = (await self.get("/metrics")).text
        return next((float(t.rsplit(" ", 1)[1]) for t in text.splitlines() if t.startswith(line + " ")), 0.0)

    def running(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> int:
        """SIGTERM; the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        readers = self.readers()
        self._process.kill()
        self._process.wait()
        for reader in readers:  # a hung one outlives its agent
            with contextlib.suppress(psutil.NoSuchProcess):
                reader.kill()


def _is_reader(process: psutil.Process) -> bool:
    # A vforked twin of a reader in state D has the same command line but a reader as its parent.
    return "extender.telemetry.agent.reader" in process.cmdline()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


QUICK: dict[str, Any] = {
    "node_name": NODE,
    "poll_seconds": 0.1,
    "event_gap_seconds": 0.02,
    "event_wait_milliseconds": 50,
    "first_deadline_seconds": 10.0,
    "deadline_seconds": 0.6,
    "publish_grace_seconds": 2.0,
    "reap_seconds": 1.0,
    "restart_min_seconds": 0.05,
    "restart_max_seconds": 0.2,
    "heartbeat_seconds": 1.0,
    "send_gap_seconds": 0.02,
    "send_backoff_max_seconds": 0.2,
    "resolve_seconds": 0.2,
    "changes": {"temperature_celsius": 0},
}

StartAgent = Callable[..., AgentProcess]


@pytest.fixture
def start_agent(library: Path, gpus: State, replica: Replica, tmp_path: Path) -> Iterator[StartAgent]:
    started: list[AgentProcess] = []
    token = tmp_path / "token"
    token.write_text("good\n")

    def start(
        log: Path | None = None, variables: dict[str, str] | None = None, **settings: Any
    ) -> AgentProcess:
        whole = {**QUICK, "target": replica.url, "token_file": str(token), **settings}
        environment = gpus.environment(library, log) | (variables or {})
        agent = AgentProcess(whole, environment, tmp_path)
        started.append(agent)
        return agent

    yield start
    for agent in started:
        agent.close()
