"""Runs one component of the control plane as a child process.

Owns its start, its log file, its readiness and its end. It knows nothing of what the component does.

Every component gets a pipe as its standard input and ends when that pipe closes (go/lifeline.go), so none
outlives the test process, not even one that was killed.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


class ComponentError(Exception):
    """A component did not start, did not become ready in time, or ended by itself."""


class Component:
    """One running component of the control-plane binary; ``name`` is for messages and the log file."""

    def __init__(self, binary: Path, name: str, arguments: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._command = [str(binary), *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            ComponentError: it is not started.
        """
        if self._process is None:
            raise ComponentError(f"{self.name} is not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; its output is appended to the log file.

        Raises:
            ComponentError: it is already running.
        """
        if self.running:
            raise ComponentError(f"{self.name} is already running")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "CONTROLPLANE_LIFELINE": "stdin"},
                start_new_session=True,  # an interrupt from the keyboard is the test process's to handle
            )

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Poll until ``ready()``.

        Raises:
            ComponentError: the process ended, or ``seconds`` went by; the text carries the log's end.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise ComponentError(f"{self.name} ended by itself; its log ends:\n{self.log_end()}")
            if time.monotonic() > deadline:
                raise ComponentError(
                    f"{self.name} was not ready within {seconds:.0f} s; its log ends:\n{self.log_end()}"
                )
            time.sleep(0.05)

    def stop(self, *, abruptly: bool = False, seconds: float = 20.0) -> None:
        """End the process: SIGTERM, then SIGKILL after ``seconds``; ``abruptly``: SIGKILL at once.

        A process that has ended already, or was never started, is fine.
        """
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGKILL if abruptly else signal.SIGTERM)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(seconds)
        if process.stdin is not None:
            process.stdin.close()
        self._process = None

    def freeze(self) -> None:
        """Halt the process without ending it, as a wedged machine would; ``thaw`` lets it go on."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a halted process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def log_end(self, lines: int = 25) -> str:
        """The last lines of the log, for messages."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def free_ports(count: int) -> list[int]:
    """Return distinct loopback TCP ports that nothing listens on.

    They lie below the range from which the kernel takes the ports of outgoing connections, so that none of
    those can occupy a component's port while the component is being restarted.
    """
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.SystemRandom().randrange(20_000, 32_000)
        if port in chosen:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue  # somebody has it
        chosen.append(port)
    return chosen
