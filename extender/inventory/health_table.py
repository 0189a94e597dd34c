"""The health table: which XIDs, recovery actions and states make a device unhealthy. Data, from YAML text.

The shipped table with its sources is policies/health.yaml. Never: files.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import yaml
from msgspec import Meta

from extender.api.telemetry import DriverState
from extender.model.errors import SettingsError

API_VERSION: Final = "berth.scheduler/v1alpha1"
KIND: Final = "HealthTable"
_MAX_XID: Final = 100_000

Seconds = Annotated[float, Meta(gt=0, le=30 * 86400)]


class _Shape(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class XidClass(_Shape, frozen=True):
    """XIDs that are answered alike; `codes` are numbers or ranges ("39-41")."""

    unhealthy: bool
    codes: list[int | str]
    quiet_seconds: Seconds | None = None


class RecoveryAction(_Shape, frozen=True):
    """What the driver says is to be done, and whether the device is fit for use meanwhile."""

    unhealthy: bool
    text: str


class DriverRules(_Shape, frozen=True):
    """States of the driver that are reasons."""

    stale: list[DriverState] = []
    unhealthy: list[DriverState] = []


class _Document(_Shape, frozen=True):
    api_version: str
    kind: str
    metadata: dict[str, str]
    quiet_seconds: Seconds
    silence_seconds: Seconds
    unknown_xid: str
    xids: dict[str, XidClass]
    recovery_actions: dict[int, RecoveryAction]
    uncorrectable_ecc: bool
    row_remap_pending: bool
    row_remap_failure: bool
    driver: DriverRules


class HealthTable:
    """The table, ready to be asked."""

    def __init__(self, document: _Document) -> None:
        """Raises SettingsError, which names the field."""
        if (document.api_version, document.kind) != (API_VERSION, KIND):
            raise SettingsError(f"apiVersion, kind: want {API_VERSION} {KIND}")
        self.quiet_s = document.quiet_seconds
        self.silence_s = document.silence_seconds
        self.uncorrectable_ecc = document.uncorrectable_ecc
        self.row_remap_pending = document.row_remap_pending
        self.row_remap_failure = document.row_remap_failure
        self.stale_drivers = frozenset(document.driver.stale)
        self.unhealthy_drivers = frozenset(document.driver.unhealthy)
        self.recovery_actions = document.recovery_actions
        self._classes = document.xids
        self._unknown = document.unknown_xid
        self._class_of: dict[int, str] = {}
        for name, entry in document.xids.items():
            for text in entry.codes:
                for code in _codes(text, f"xids.{name}.codes"):
                    former = self._class_of.setdefault(code, name)
                    if former != name:
                        raise SettingsError(f"xids.{name}.codes: {code} is in {former} too")
        if self._unknown not in self._classes:
            raise SettingsError(f"unknownXid: {self._unknown!r} is not one of xids: {sorted(self._classes)}")

    def class_of(self, xid: int) -> tuple[str, XidClass]:
        """Name and rules of an XID's class; the class of unknown ones for any that is not listed."""
        name = self._class_of.get(xid, self._unknown)
        return name, self._classes[name]

    def quiet_of(self, xid: int) -> float:
        """Seconds for which an XID counts."""
        return self.class_of(xid)[1].quiet_seconds or self.quiet_s


def parse_health_table(text: str, source: str) -> HealthTable:
    """The table in YAML text. Raises SettingsError, which names `source` and the field."""
    try:
        raw: Any = yaml.safe_load(text)
        document = msgspec.convert(raw, _Document)
        return HealthTable(document)
    except (yaml.YAMLError, msgspec.ValidationError, SettingsError) as fault:
        raise SettingsError(f"{source}: {fault}") from fault


def _codes(text: int | str, where: str) -> range:
    first, dash, last = str(text).partition("-")
    try:
        codes = range(int(first), int(last if dash else first) + 1)
    except ValueError as fault:
        raise SettingsError(f"{where}: {text!r} is neither a number nor a range") from fault
    if not codes or codes[0] < 0 or codes[-1] > _MAX_XID:
        raise SettingsError(f"{where}: {text!r} is empty or out of range")
    return codes
