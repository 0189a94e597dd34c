"""`python -m loadtest.run`: a server on this machine, a kube-scheduler's calls at it, and a report.

Owns the server's life and the report. Everything is bounded: the server's start, each phase in seconds and in
requests. It talks to the loopback address only.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from extender.sim.generated import DEVICES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
SIZES = (500, 5_000)
_START_S = 240.0


class LoadError(Exception):
    """The server did not come up, or a phase could not be run."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What one phase measured: names in a call, times in ms by verb, what went wrong, its length in s."""

    names: int
    times: dict[str, list[float]]
    faults: list[str]
    seconds: float


@contextmanager
def serving(nodes: int, folder: Path) -> Iterator[str]:
    """Serve a generated fleet until the block ends; gives the base URL.

    Raises:
        LoadError: it was not ready in time, or ended by itself.
    """
    port = _free_port()
    config = folder / "berth.yaml"
    config.write_text(
        f"server: {{host: 127.0.0.1, port: {port}}}\n"
        f"policy: {{file: {ROOT / 'policies' / 'default.yaml'}}}\n"
        "logging: {level: warning}\n"
    )
    log = folder / "server.log"
    command = [sys.executable, "-m", "extender", "serve"]
    with log.open("wb") as output:
        server = subprocess.Popen(  # noqa: S603 - our own program
            [*command, "--embedded", "--nodes", str(nodes), "--config", str(config)],
            stdout=output,
            stderr=output,
            cwd=ROOT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(server, url, log)
        yield url
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(10)


def play(url: str, names: int, folder: Path, *, nodes: int, seconds: int, most_requests: int) -> Phase:
    """Play one kube-scheduler for ``seconds`` or ``most_requests``, whichever comes first.

    Raises:
        LoadError: the client failed or ran on past its time.
    """
    results = folder / f"results-{names}.json"
    environment = {
        **os.environ,
        "LOADTEST_NODES": str(nodes),
        "LOADTEST_NAMES": str(names),
        "LOADTEST_MOST_REQUESTS": str(most_requests),
        "LOADTEST_RESULTS": str(results),
    }
    command = [
        *(sys.executable, "-m", "locust", "--headless", "--locustfile", "loadtest/locustfile.py"),
        *("--host", url, "--users", "1", "--spawn-rate", "1", "--run-time", f"{seconds}s"),
        *("--only-summary", "--exit-code-on-error", "0"),
    ]
    began = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 - our own users
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds + 60,
            check=False,
        )
    except subprocess.TimeoutExpired as fault:
        raise LoadError(f"the phase of {names} names did not end by itself") from fault
    if not results.exists():
        raise LoadError(f"locust ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    read = json.loads(results.read_text())
    return Phase(names, read["times"], read["faults"], time.monotonic() - began)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that ``share`` of all are not above (nearest rank)."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def report(phases: Sequence[Phase], nodes: int) -> str:
    """Return the report as Markdown; times in milliseconds."""
    lines = [
        "# Load",
        "",
        f"One kube-scheduler on one connection against {nodes:,} nodes of {DEVICES} devices.",
        f"Client and server share {os.cpu_count()} CPUs; times in ms, the client's own included.",
        "",
        "| names | verb | calls | p50 | p95 | p99 | max | errors |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for phase in phases:
        for verb, times in phase.times.items():
            if not times:
                continue
            cells = [f"{percentile(times, share):.1f}" for share in (0.5, 0.95, 0.99, 1.0)]
            errors = sum(fault.startswith(f"{verb}:") for fault in phase.faults)
            lines.append(f"| {phase.names:,} | {verb} | {len(times)} | {' | '.join(cells)} | {errors} |")
    faults = sorted({fault for phase in phases for fault in phase.faults})
    if faults:
        lines += ["", "Errors:", "", *(f"- {fault}" for fault in faults[:20])]
    return "\n".join([*lines, ""])


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise LoadError(f"the server ended with status {server.returncode}:\n{log.read_text()[-4000:]}")
        try:
            if httpx.get(f"{url}/readyz", timeout=5.0, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass  # it does not listen yet
        time.sleep(0.2)
    raise LoadError(f"the server was not ready within {_START_S:.0f} s:\n{log.read_text()[-4000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both phases and write the report; 1 where a call went wrong."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.run", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--seconds", type=int, default=20, help="of each phase")
    parser.add_argument("--requests", type=int, default=20_000, help="at most, of each phase")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "load.md")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="loadtest-") as scratch:
        folder = Path(scratch)
        began = time.monotonic()
        try:
            with serving(chosen.nodes, folder) as url:
                print(f"server ready in {time.monotonic() - began:.1f} s", flush=True)
                phases = [
                    play(
                        url,
                        names,
                        folder,
                        nodes=chosen.nodes,
                        seconds=chosen.seconds,
                        most_requests=chosen.requests,
                    )
                    for names in SIZES
                ]
        except LoadError as fault:
            print(fault, file=sys.stderr)
            return 1
    text = report(phases, chosen.nodes)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text)
    print(text)
    return 1 if any(phase.faults for phase in phases) else 0


if __name__ == "__main__":
    sys.exit(main())
