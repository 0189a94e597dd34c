"""Every setting of Berth: one frozen model, read from a YAML file and the environment.

The file is spelled in camelCase. Each setting can be given as BERTH_<SECTION>__<FIELD> (snake case in
capitals), which wins over the file. Unknown keys are errors. `docs/settings.md` is made from this module.
Never: what the settings are used for, or a read of the environment on its own (it is passed in).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from extender.model.addresses import is_loopback
from extender.model.describing import default_text, type_text
from extender.model.document import Document, DocumentError, Fault, dotted, read_documents
from extender.model.errors import SettingsError
from extender.model.schema import (
    FIELD,
    fault_text,
    field_to_blame,
    spelled,
    written_path,
)
from extender.model.variables import leaves, overlay, variable, variables
from extender.model.workload import WorkloadClass

PREFIX = "BERTH_"

M = TypeVar("M", bound=BaseModel)


def _blame(text: str, *below: str) -> PydanticCustomError:
    """The fault of several fields together, shown at one of them."""
    return PydanticCustomError("together", text, {FIELD: below})


class Section(BaseModel):
    """A part of the settings."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True
    )


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
            raise _blame("source `embedded` needs `fleetPath`", "source")
        return self


class SchedulerSettings(Section):
    """Which pods are ours, and how far we go with them."""

    names: tuple[str, ...] = Field(default=("default-scheduler", "berth-scheduler"), min_length=1)
    """spec.schedulerName of our pods; others are answered with an echo."""

    excluded_namespaces: tuple[str, ...] = ("kube-system",)
    """Namespaces whose pods are answered with an echo."""

    mode: Literal["enforce", "shadow"] = "enforce"
    """`shadow`: every node passes and scores 0; what would have been said is recorded."""

    priority_classes: dict[str, WorkloadClass] = {}
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
            raise _blame(
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


class DcgmSettings(Section):
    """Scrapes of dcgm-exporter."""

    targets: dict[str, str] = {}
    """URL of the exporter's /metrics by node name."""

    pattern: str = ""
    """URL for every other node with devices, `{node}` in place of its name: `http://{node}:9400/metrics`."""

    interval_seconds: float = Field(default=15.0, gt=0, le=3600)
    """Between two scrapes of a node."""

    collect_seconds: float = Field(default=30.0, gt=0, le=3600)
    """The exporter's own collect interval: its texts carry no times, so readings count as that old."""


class PrometheusSettings(Section):
    """One query against an existing Prometheus that scrapes dcgm-exporter."""

    url: str = ""
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
            raise _blame("must be larger than staleAfterSeconds", "absent_after_seconds")
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


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True
    )

    server: ServerSettings = ServerSettings()
    """The HTTP server."""

    kube: KubeSettings = KubeSettings()
    """Where cluster state comes from."""

    scheduler: SchedulerSettings = SchedulerSettings()
    """Which pods are ours, and how far we go with them."""

    inventory: InventorySettings = InventorySettings()
    """What counts as an accelerator."""

    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    """One replica leads; the others are warm."""

    policy: PolicySettings = PolicySettings()
    """Weights and rules."""

    telemetry: TelemetrySettings = TelemetrySettings()
    """How old a sample may be, who may send one, and the sources beside the node agents."""

    quarantine: QuarantineSettings = QuarantineSettings()
    """A taint on every unhealthy device."""

    nudges: NudgeSettings = NudgeSettings()
    """Waiting pods are tried again once the reason is gone."""

    api: ApiSettings = ApiSettings()
    """Who may read `/api`."""

    logging: LoggingSettings = LoggingSettings()
    """Logs, on standard error."""

    decisions: DecisionSettings = DecisionSettings()
    """The decision record."""

    @model_validator(mode="after")
    def _no_token_in_the_open(self) -> Settings:
        if self.api.auth and self.server.tls is None and not self.server.is_loopback():
            raise _blame(
                "needs server.tls (tokens never go over plain HTTP) unless server.host is a loopback "
                "address; set server.tls, or api.auth: false",
                "api",
                "auth",
            )
        if self.api.auth and self.kube.source == "embedded":
            raise _blame(
                "needs an API server to review tokens; kube.source `embedded` has none, set api.auth: false",
                "api",
                "auth",
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library passes all five by name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed in: `load` has already read the environment that it was given."""
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """A setting as the documentation shows it."""

    key: str
    variable: str
    type: str
    default: str
    text: str


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings from `path` (None: defaults) and from the BERTH_* variables of `environ`.

    Raises:
        SettingsError: As `load_model`.
    """
    return load_model(Settings, path, environ, PREFIX)


def load_model(model: type[M], path: Path | None, environ: Mapping[str, str], prefix: str) -> M:
    """Read any model in the same way, with variables of another prefix.

    Raises:
        SettingsError: Something is wrong. The text has a line for every fault, each with the file, the line
            and the field, or with the name of the variable.
    """
    document = _read(path) if path is not None else Document({}, {})
    values, faults = spelled(model, document)
    complaints = overlay(values, model, environ, prefix)
    given = {steps: name for name, steps in variables(model, prefix).items() if name in environ}
    try:
        settings = model(**values)
    except pydantic.ValidationError as error:
        for detail in error.errors(include_url=False):
            blamed = field_to_blame(detail)
            name = given.get(tuple(step for step in blamed if isinstance(step, str)))
            if name is not None:
                complaints.append(f"variable {name}: {fault_text(detail)}")
                continue
            written = written_path(model, blamed)
            faults.append(Fault(document.line(written), dotted(written), fault_text(detail)))
    else:
        if not faults and not complaints:
            return settings
    in_file = [f"{path or 'defaults'}:{line}: {field}: {text}" for line, field, text in sorted(faults)]
    raise SettingsError("\n".join(in_file + complaints))


def describe(model: type[BaseModel], prefix: str) -> Iterator[SettingDoc]:
    """Every setting of a model, in its order."""
    for steps, field in leaves(model):
        yield SettingDoc(
            key=".".join(to_camel(step) for step in steps),
            variable=variable(prefix, steps),
            type=type_text(field.annotation),
            default="required" if field.is_required() else default_text(field.default),
            text=" ".join((field.description or "").split()),
        )


def _read(path: Path) -> Document:
    try:
        documents = list(read_documents(path.read_text(encoding="utf-8")))
    except DocumentError as error:
        raise SettingsError(f"{path}:{error.line}: {error.text}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: can't be read: {error}") from error
    if len(documents) > 1:
        raise SettingsError(f"{path}:{documents[1].line(())}: one document is expected, this is the second")
    return documents[0] if documents else Document(None, {})
