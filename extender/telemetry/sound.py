"""Readings within their ranges, whatever a driver or exporter said."""

from __future__ import annotations

from typing import Any

import msgspec

from extender.api.telemetry import Absence, Readings


def sound(readings: Readings) -> Readings:
    """The same readings; one outside its range (a driver's own fault) becomes an error instead."""
    try:
        return msgspec.convert(msgspec.to_builtins(readings), Readings)
    except msgspec.ValidationError:
        return Readings(
            **{field.name: _sound_value(field, readings) for field in msgspec.structs.fields(Readings)}
        )


def _sound_value(field: msgspec.structs.FieldInfo, readings: Readings) -> Any:
    try:
        return msgspec.convert(getattr(readings, field.name), field.type)
    except msgspec.ValidationError:
        return Absence.ERROR
