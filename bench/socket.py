"""Both verbs over the socket: a real replica with 500 nodes, one keep-alive connection, as kube-scheduler."""

from __future__ import annotations

import http.client
import random
import socket
import subprocess
import sys
import time
from statistics import median
from time import perf_counter

import msgspec

from bench.fleet import node_name
from bench.result import Result, at_most, figure, percentile
from extender.api.core import Container, Pod, PodSpec, ResourceRequirements
from extender.api.extender import ExtenderArgs
from extender.api.meta import ObjectMeta

NODES = 500
CALLS = 1500
STARTS_WITHIN = 60.0


def run() -> list[Result]:
    """p50 and p99 of filter and prioritize at 500 names."""
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "extender",
        "serve",
        "--embedded",
        "--nodes",
        str(NODES),
        "--port",
        str(port),
    ]
    replica = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        connection = _connect(port, replica)
        times = {verb: _measure(connection, verb) for verb in ("filter", "prioritize")}
    finally:
        replica.terminate()
        replica.wait(30)
    results = []
    for verb, spent in times.items():
        results.append(
            at_most(f"{verb} over the socket, 500 names, p99", percentile(spent, 0.99) * 1e3, "ms", 5.0)
        )
        results.append(figure(f"{verb} over the socket, 500 names, p50", median(spent) * 1e3, "ms"))
    return results


def _measure(connection: http.client.HTTPConnection, verb: str) -> list[float]:
    dice = random.Random(11)
    names = [node_name(number) for number in range(NODES)]
    spent = []
    for number in range(CALLS):
        dice.shuffle(names)
        body = msgspec.json.encode(ExtenderArgs(pod=_pod(number), node_names=names))
        began = perf_counter()
        connection.request("POST", f"/extender/{verb}", body, {"content-type": "application/json"})
        reply = connection.getresponse()
        content = reply.read()
        spent.append(perf_counter() - began)
        assert reply.status == http.client.OK, content[:200]
    return spent[100:]


def _pod(number: int) -> Pod:
    requests: dict[str, str | int | float] = {"cpu": "1", "nvidia.com/gpu": str(1 + number % 4)}
    return Pod(
        metadata=ObjectMeta(name=f"pod-{number}", namespace="default", uid=f"uid-{number}"),
        spec=PodSpec(
            scheduler_name="default-scheduler",
            containers=[Container(name="main", resources=ResourceRequirements(requests=requests))],
        ),
    )


def _connect(port: int, replica: subprocess.Popen[bytes]) -> http.client.HTTPConnection:
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until and replica.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.connect()
        except OSError:
            time.sleep(0.1)
        else:
            assert connection.sock is not None
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
    raise RuntimeError("the replica did not start")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
