"""Both verbs over the socket: a real replica with 500 nodes, one kept-alive TLS connection.

As kube-scheduler does it: filter, then prioritize. The pods are of every kind of the made-up fleet: claims of
one and of eight devices, with a selector, of a device plugin, without devices.
"""

from __future__ import annotations

import http.client
import os
import random
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec

from bench.fleet import node_name
from bench.result import Result, at_most, figure, percentile
from extender.api.extender import ExtenderArgs
from extender.sim.generated import POD_KINDS, asking
from tests.controlplane.processes import free_ports
from tests.deploy.manifests import DEPLOY

MAKE_CERTIFICATES = DEPLOY / "make-certificates"
NODES = 500
CALLS = 1500
IN_FLIGHT = 50  # pods between the reply and their allocation: as many as writes take a second at 50 pods/s
STARTS_WITHIN = 60.0


def run() -> list[Result]:
    """p50 and p99 of filter and prioritize at 500 names."""
    with tempfile.TemporaryDirectory() as folder:
        tls = Path(folder)
        subprocess.run([MAKE_CERTIFICATES, tls], check=True, timeout=60)
        (port,) = free_ports(1)
        replica = _start(port, tls)
        try:
            connection = _connect(port, replica, tls)
            times = _measure(connection)
            connection.close()
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


def _start(port: int, tls: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "extender", "serve", "--embedded", "--nodes", str(NODES)]
    files = {
        "CERT_FILE": tls / "berth" / "tls.crt",
        "KEY_FILE": tls / "berth" / "tls.key",
        "CLIENT_CA_FILE": tls / "ca.crt",
    }
    variables = {f"BERTH_SERVER__TLS__{name}": str(path) for name, path in files.items()}
    return subprocess.Popen(
        [*command, "--port", str(port)], env={**os.environ, **variables}, stderr=subprocess.DEVNULL
    )


def _measure(connection: http.client.HTTPSConnection) -> dict[str, list[float]]:
    """Seconds by verb."""
    dice = random.Random(11)
    names = [node_name(number) for number in range(NODES)]
    spent: dict[str, list[float]] = {"filter": [], "prioritize": []}
    for number in range(CALLS):
        dice.shuffle(names)
        pod = asking(POD_KINDS[number % len(POD_KINDS)], number % IN_FLIGHT)
        body = msgspec.json.encode(ExtenderArgs(pod=pod, node_names=names))
        for verb, times in spent.items():
            began = perf_counter()
            connection.request("POST", f"/extender/{verb}", body, {"content-type": "application/json"})
            reply = connection.getresponse()
            content = reply.read()
            times.append(perf_counter() - began)
            assert reply.status == http.client.OK, content[:200]
            assert names[0].encode() in content, content[:200]
    return {verb: times[100:] for verb, times in spent.items()}


def _connect(port: int, replica: subprocess.Popen[bytes], tls: Path) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=tls / "ca.crt")
    context.load_cert_chain(tls / "scheduler" / "tls.crt", tls / "scheduler" / "tls.key")
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until and replica.poll() is None:
        connection = http.client.HTTPSConnection("localhost", port, timeout=10, context=context)
        try:
            connection.connect()
        except OSError:
            time.sleep(0.1)
        else:
            assert connection.sock is not None
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
    raise RuntimeError("the replica did not start")
