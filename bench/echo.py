"""The echo extender as a process: what kube-scheduler has left when an extender costs nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.build import Program, build
from tests.controlplane.processes import free_ports


@contextmanager
def echoing(certificate: Path, key: Path) -> Iterator[int]:
    """Run it, over TLS as Berth is run, on the port that is returned.

    Raises:
        BuildError: as for build_controlplane; it needs Go's standard library alone.
    """
    program = build(Program("echo", Path(__file__).parent / "go", ".", ()))
    (port,) = free_ports(1)
    process = subprocess.Popen([program, f"127.0.0.1:{port}", certificate, key], stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.kill()
        process.wait(10)
