"""All sections together, and what must hold between them."""

from __future__ import annotations

from pydantic import model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from extender.settings.section import blame
from extender.settings.service import (
    ApiSettings,
    DecisionSettings,
    InventorySettings,
    KubeSettings,
    LeaderElectionSettings,
    LoggingSettings,
    PolicySettings,
    SchedulerSettings,
    ServerSettings,
)
from extender.settings.telemetry import NudgeSettings, QuarantineSettings, TelemetrySettings


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
            raise blame(
                "needs server.tls (tokens never go over plain HTTP) unless server.host is a loopback "
                "address; set server.tls, or api.auth: false",
                "api",
                "auth",
            )
        if self.api.auth and self.kube.source == "embedded":
            raise blame(
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
