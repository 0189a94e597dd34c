"""`berth serve` as a process of its own on loopback, for tests that talk to it and stop it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
STARTS_WITHIN = 60.0
LISTENING = re.compile(r'"url": "(http://[^"]+)"')


@dataclass
class Service:
    """A process that listens at `url`."""

    process: subprocess.Popen[bytes]
    log: Path
    url: str = ""

    def http(self) -> httpx.Client:
        """A client for it."""
        return httpx.Client(base_url=self.url, timeout=10, trust_env=False)

    def lines(self) -> list[dict[str, Any]]:
        """Its log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def wait_said(self, event: str, times: int = 1) -> dict[str, Any]:
        """Wait until the log has this event so often; its last line."""
        until = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < until:
            found = [line for line in self.lines() if line["event"] == event]
            if len(found) >= times:
                return found[times - 1]
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise TimeoutError(f"{event!r} is not in {self.log.read_text()}")

    def stop(self) -> int:
        """End it by SIGTERM; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def command(*arguments: str) -> list[str]:
    """A command line of `berth`."""
    return [sys.executable, "-m", "extender", *arguments]


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, **environ: str) -> Iterator[Service]:
    """Serve until the block ends; `environ` are BERTH_ variables without the prefix."""
    variables = {f"BERTH_{name}": value for name, value in environ.items()}
    log = folder / "log.jsonl"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command("serve", "--port", "0", *arguments),
            env={**os.environ, **variables},
            stdout=out,
            stderr=out,
            cwd=ROOT,
        )
    service = Service(process, log)
    try:
        service.url = service.wait_said("listening")["url"]
        yield service
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
