"""Settings of `berth agent`: one frozen model, filled from a file and the environment by `__main__`.

Never: reads files or the environment itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from extender.model.addresses import is_http_url, is_loopback

AGENT_PREFIX = "BERTH_AGENT__"
"""Of the variables, as BERTH_ is of the service's."""

Seconds = Annotated[float, Field(gt=0, le=86400)]


class ChangeBounds(BaseModel):
    """How far a reading must move from the last one sent before a sample goes out ahead of the heartbeat."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    memory_bytes: Annotated[int, Field(ge=0)] = 256 << 20
    """Used and reserved memory."""
    utilisation_percent: Annotated[int, Field(ge=0)] = 20
    """GPU and memory utilisation."""
    temperature_celsius: Annotated[int, Field(ge=0)] = 5
    """Temperature."""
    power_milliwatts: Annotated[int, Field(ge=0)] = 75_000
    """Power draw and limit."""


class AgentSettings(BaseModel):
    """Everything that the node agent can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    node_name: Annotated[str, Field(min_length=1, max_length=128)]
    """The node that this agent runs on; must be the node claim of its token."""
    target: str = "https://berth-telemetry.berth-system.svc:8443"
    """Where samples go: the headless Service, resolved by DNS to every replica. Plain http: loopback only."""
    addresses: tuple[str, ...] = ()
    """Fixed `host:port` addresses instead of DNS; the certificate is still checked for the target's host."""
    token_file: Path = Path("/var/run/secrets/tokens/berth")
    """The projected service-account token (audience `berth`), read anew at each send."""
    ca_file: Path | None = None
    """CA bundle for the replicas' certificate; the system's when absent."""
    listen_host: str = "127.0.0.1"
    """Address of /healthz, /metrics and /sample."""
    listen_port: Annotated[int, Field(ge=0, le=65535)] = 9401
    """Port of the same; 0 takes a free one."""
    poll_seconds: Seconds = 5.0
    """Between two readings. Below a second adds nothing: NVML's own windows are that long."""
    processes_seconds: Seconds = 30.0
    """Between two process lists, the dear part (milliseconds under the driver's lock)."""
    event_gap_seconds: Seconds = 0.5
    """Between two readings that events ask for."""
    event_wait_milliseconds: Annotated[int, Field(ge=10, le=5000)] = 5000
    """Longest wait of the event thread in the driver."""
    first_deadline_seconds: Seconds = 60.0
    """Deadline of a reader's first answer: initialising 8 GPUs without persistence takes half a minute."""
    deadline_seconds: Seconds = 10.0
    """Deadline of a later answer. Past it the driver is reported as unresponsive, then the reader killed."""
    publish_grace_seconds: Seconds = 2.0
    """How long the kill waits for that report to reach the replicas."""
    reap_seconds: Seconds = 5.0
    """How long a killed reader may take to go before it counts as stuck."""
    stop_grace_seconds: Seconds = 7.0
    """How long a healthy reader may take to end by itself; longer than one event wait."""
    restart_min_seconds: Seconds = 1.0
    """First pause before a reader is started again."""
    restart_max_seconds: Seconds = 60.0
    """Longest such pause."""
    heartbeat_seconds: Seconds = 15.0
    """A sample goes out at least this often."""
    send_gap_seconds: Seconds = 1.0
    """Least time between two samples to one replica."""
    send_timeout_seconds: Seconds = 5.0
    """One request to one replica."""
    send_backoff_max_seconds: Seconds = 30.0
    """Longest pause after failed requests; the first is `send_gap_seconds`."""
    resolve_seconds: Seconds = 10.0
    """Between two look-ups of the target's host."""
    compress_above: Annotated[int, Field(ge=0)] = 32768
    """Samples longer than this many bytes are sent with gzip."""
    xid_keep_seconds: Seconds = 600.0
    """How long an XID stays in the samples, so that a replica that was away hears of it."""
    changes: ChangeBounds = ChangeBounds()
    """What counts as a change."""
    proc_root: Path = Path("/proc")
    """The host's /proc, from which a process's pod is read."""
    sysfs_root: Path = Path("/sys")
    """The host's /sys, from which NUMA nodes are read."""
    state_dir: Path | None = None
    """Where the mark of a stuck reader survives a restart of the agent (an emptyDir); none: it does not."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not is_http_url(self.target):
            raise ValueError(f"target: {self.target!r} is not an http or https URL")
        url = urlsplit(self.target)
        if url.scheme == "http" and not all(
            is_loopback(split_address(a)[0]) for a in self.addresses or (url.netloc,)
        ):
            raise ValueError(f"target: {self.target!r}: a token never goes over plain http off this machine")
        for address in self.addresses:
            split_address(address)
        if self.restart_max_seconds < self.restart_min_seconds:
            raise ValueError("restart_max_seconds: less than restart_min_seconds")
        return self


def split_address(address: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port` apart; port 0 when there is none. Raises ValueError."""
    parts = urlsplit(f"//{address}")
    if not parts.hostname:
        raise ValueError(f"addresses: {address!r} is not host:port")
    return parts.hostname, parts.port or 0
