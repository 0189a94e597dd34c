"""Sections about the service itself: how it is reached, where its state comes from, whom it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from extender.model.addresses import is_loopback
from extender.model.workload import WorkloadClass
from extender.settings.section import Section, blame


class TlsSettings(Section):
    """TLS by files; they are read again when they change."""

    cert_file: Path
    """Certificate chain of the server, PEM."""

    key_file: Path
    """Private key of the certificate, PEM."""

    client_ca_file: Path | None = None
    """CA bundle: when given, `/extender` answers only clients with a certificate signed by it."""

    reload_seconds: float = Field(default=10.0, gt=0, le=3600)
    """How often the files are looked at."""


class ServerSettings(Section):
    """The HTTP server."""

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 in a cluster."""

    port: int = Field(default=8080, ge=0, le=65535)
    """Port to listen on; 0 takes any free one and logs it."""

    tls: TlsSettings | None = None
    """Certificate files; without them the server speaks plain HTTP."""

    body_limit_bytes: int = Field(default=64 * 1024 * 1024, ge=64 * 1024, le=1024**3)
    """Largest request body. 5,000 nodes sent in full are about 50 MB."""

    keep_alive_seconds: int = Field(default=120, gt=90, le=3600)
    """How long an idle connection stays open. Above 90: the scheduler's client keeps idle ones that long, and
    must not reuse one that has just been closed here."""

    shutdown_grace_seconds: int = Field(default=20, ge=0, le=600)
    """How long open requests may take after SIGTERM before they are cut."""

    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)


class KubeSettings(Section):
    """Where cluster state comes from."""

    source: Literal["cluster", "embedded"] = "cluster"
    """`cluster`: an API server. `embedded`: Kubernetes YAML from `fleetPath`, in memory, no cluster."""

    fleet_path: Path | None = None
    """Folder or file of Kubernetes YAML for source `embedded`."""

    kubeconfig: Path | None = None
    """Kubeconfig file; without it the pod's service account."""

    context: str | None = None
    """Context of the kubeconfig; without it the current one."""

    namespace: str = Field(default="berth-system", min_length=1)
    """Namespace that Berth runs in: its Lease and its ConfigMap are there."""

    page_size: int = Field(default=250, ge=10, le=1000)
    """Objects in a page of a list; a large page holds up answers while it is decoded."""

    request_timeout_seconds: float = Field(default=30.0, gt=0, le=300)
    """Time-out of one request to the API server, a page of a list too; watches, bindings, reviews and the
    Lease have their own."""

    drift_seconds: float = Field(default=300.0, ge=0, le=86400)
    """How often the ledger is compared with a fresh list of everything; 0 never does."""

    @model_validator(mode="after")
    def _fleet_for_embedded(self) -> KubeSettings:
        if self.source == "embedded" and self.fleet_path is None:
            raise blame("source `embedded` needs `fleetPath`", "source")
        return self


class SchedulerSettings(Section):
    """Which pods are ours, and how far we go with them."""

    names: tuple[str, ...] = Field(default=("default-scheduler", "berth-scheduler"), min_length=1)
    """spec.schedulerName of our pods; others are answered with an echo."""

    excluded_namespaces: tuple[str, ...] = ("kube-system",)
    """Namespaces whose pods are answered with an echo."""

    mode: Literal["enforce", "shadow"] = "enforce"
    """`shadow`: every node passes and scores 0; what would have been said is recorded."""

    priority_classes: dict[str, WorkloadClass] = Field(default={})
    """Workload class by PriorityClass, for pods whose labels and owners say nothing."""

    safety_config_map: str = Field(default="berth-safety", min_length=1)
    """ConfigMap in Berth's namespace that turns every veto off at once."""


class InventorySettings(Section):
    """What counts as an accelerator."""

    accelerator_resources: tuple[str, ...] = (
        "nvidia.com/gpu*",
        "nvidia.com/mig-*",
        "amd.com/gpu*",
        "gpu.intel.com/*",
        "habana.ai/gaudi*",
        "aws.amazon.com/neuron*",
        "google.com/tpu*",
    )
    """Patterns of device-plugin resources that are accelerators."""

    other_drivers: tuple[str, ...] = ("dra.net",)
    """Drivers whose devices are no accelerators (network cards): their nodes stay open to ordinary pods."""


class LeaderElectionSettings(Section):
    """One replica leads; the others are warm."""

    lease_name: str = Field(default="berth", min_length=1)
    """Name of the Lease."""

    lease_duration_seconds: float = Field(default=10.0, ge=1, le=300)
    """How long a Lease that is not renewed is respected: a dead leader is replaced after this."""

    renew_deadline_seconds: float = Field(default=7.0, gt=0, le=300)
    """A leader that could not renew for this long stops leading."""

    retry_period_seconds: float = Field(default=2.0, gt=0, le=60)
    """Pause between attempts to take or renew the Lease."""

    @model_validator(mode="after")
    def _ordered(self) -> LeaderElectionSettings:
        if not self.lease_duration_seconds > self.renew_deadline_seconds > self.retry_period_seconds:
            raise blame(
                "leaseDurationSeconds > renewDeadlineSeconds > retryPeriodSeconds must hold",
                "lease_duration_seconds",
            )
        return self


class PolicySettings(Section):
    """Weights and rules."""

    file: Path | None = None
    """Policy file; without it the policy that comes with Berth (`policies/default.yaml`)."""

    reload_seconds: float = Field(default=10.0, gt=0, le=3600)
    """How often the file is looked at."""


class ApiSettings(Section):
    """Who may read `/api`."""

    auth: bool = True
    """Whether `/api` asks for a bearer token (TokenReview, then SubjectAccessReview on the path)."""

    audience: str = Field(default="berth", min_length=1)
    """Audience that the token must have."""


class LoggingSettings(Section):
    """Logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level that is written; `debug` has one line a decision."""

    format: Literal["json", "console"] = "json"
    """One JSON object a line, or text for people."""


class DecisionSettings(Section):
    """The decision record."""

    ring_size: int = Field(default=4096, ge=16, le=1_000_000)
    """How many pods' last decisions are kept, in memory."""
