"""Sections about what devices are doing, and what follows from it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from extender.settings.section import Section, UrlOfNodes, UrlOrNothing, UrlsByName, blame


class DcgmSettings(Section):
    """Scrapes of dcgm-exporter."""

    targets: UrlsByName = Field(default={})
    """URL of the exporter's /metrics by node name."""

    pattern: UrlOfNodes = ""
    """URL for every other node with devices, `{node}` in place of its name: `http://{node}:9400/metrics`."""

    interval_seconds: float = Field(default=15.0, gt=0, le=3600)
    """Between two scrapes of a node."""

    collect_seconds: float = Field(default=30.0, gt=0, le=3600)
    """The exporter's own collect interval: its texts carry no times, so readings count as that old."""


class PrometheusSettings(Section):
    """One query against an existing Prometheus that scrapes dcgm-exporter."""

    url: UrlOrNothing = ""
    """Base URL of its HTTP API; empty: no queries."""

    interval_seconds: float = Field(default=30.0, gt=0, le=3600)
    """Between two queries."""

    collect_seconds: float = Field(default=30.0, gt=0, le=3600)
    """The exporter's collect interval, added to the age of what Prometheus scraped."""

    ca_file: Path | None = None
    """CA bundle for https; the system's when absent."""

    token_file: Path | None = None
    """A bearer token, sent over https or to this machine only."""


class TelemetrySettings(Section):
    """How old a sample may be, who may send one, and the sources beside the node agents.

    The order of the sources is agent, dcgm-exporter, Prometheus; of readings that are fresh the first one's
    counts.
    """

    audience: str = Field(default="berth", min_length=1)
    """Audience that the token of a node agent must have."""

    accounts: tuple[str, ...] = Field(
        default=("system:serviceaccount:berth-agent:berth-agent",), min_length=1
    )
    """User names that may send samples, each for the node that its token is bound to. Any pod can have a
    token of any audience for its own node, so the audience alone says nothing."""

    stale_after_seconds: float = Field(default=45.0, gt=0, le=3600)
    """A value older than this is `stale`; agents send at least every 15 s."""

    absent_after_seconds: float = Field(default=300.0, gt=0, le=86400)
    """A value older than this is `absent`."""

    half_life_seconds: float = Field(default=60.0, gt=0, le=3600)
    """Half-life of the smoothing (EWMA) of utilisation, memory, temperature and power."""

    health_table: Path | None = None
    """Which XIDs, recovery actions and states make a device unhealthy; without it the table that comes with
    Berth (`policies/health.yaml`). Read at start."""

    dcgm: DcgmSettings = DcgmSettings()
    """Scrapes of dcgm-exporter."""

    prometheus: PrometheusSettings = PrometheusSettings()
    """One query against an existing Prometheus that scrapes dcgm-exporter."""

    @model_validator(mode="after")
    def _ordered(self) -> TelemetrySettings:
        if not self.absent_after_seconds > self.stale_after_seconds:
            raise blame("must be larger than staleAfterSeconds", "absent_after_seconds")
        return self


class QuarantineSettings(Section):
    """A taint (DeviceTaintRule, NoSchedule) on every unhealthy device, written by the leader."""

    enabled: bool = False
    """Whether it is on; it needs the rights of deploy/components/quarantine and an API server that serves
    DeviceTaintRule."""

    max_share: float = Field(default=0.1, gt=0, le=1)
    """Largest share of the published devices that is quarantined at once, rounded down: 0.1 of 19 is one."""

    interval_seconds: float = Field(default=2.0, gt=0, le=300)
    """Between two looks at the fleet's health."""


class NudgeSettings(Section):
    """A change of an annotation on a pod that a lasting reason kept waiting, once that reason is gone.

    kube-scheduler then tries the pod again at once, not after up to five minutes.
    """

    enabled: bool = True
    """Whether the leader does it; it needs the rights of deploy/components/nudge."""

    per_second: float = Field(default=10.0, gt=0, le=1000)
    """Most nudges a second in the long run."""

    burst: int = Field(default=20, ge=1, le=1000)
    """Most nudges at once."""

    interval_seconds: float = Field(default=1.0, gt=0, le=300)
    """Between two looks at who still has a reason to wait."""
