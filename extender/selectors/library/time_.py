"""Parts of timestamps and durations: getFullYear to getMilliseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.library.instants import in_zone
from extender.selectors.types import DURATION, INT, STRING, TIMESTAMP

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")

_PARTS: Final[dict[str, tuple[str, Callable[[datetime, int], int]]]] = {
    "getFullYear": ("year", lambda moment, _nanos: moment.year),
    "getMonth": ("month", lambda moment, _nanos: moment.month - 1),
    "getDayOfYear": ("day_of_year", lambda moment, _nanos: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": ("day_of_month", lambda moment, _nanos: moment.day - 1),
    "getDate": ("day_of_month_1_based", lambda moment, _nanos: moment.day),
    "getDayOfWeek": ("day_of_week", lambda moment, _nanos: moment.isoweekday() % 7),
    "getHours": ("hours", lambda moment, _nanos: moment.hour),
    "getMinutes": ("minutes", lambda moment, _nanos: moment.minute),
    "getSeconds": ("seconds", lambda moment, _nanos: moment.second),
    "getMilliseconds": ("milliseconds", lambda _moment, nanos: nanos // 10**6),
}
_DURATION_UNITS: Final = {
    "getHours": 3600 * 10**9,
    "getMinutes": 60 * 10**9,
    "getSeconds": 10**9,
    "getMilliseconds": 10**6,
}


def _zone(name: str) -> Any:
    hours, colon, minutes = name.partition(":")
    if not colon:
        if name in {"", "UTC"}:
            return UTC
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise CelError(f"unknown time zone {name}") from None
    for part in (hours, minutes):
        if not _INTEGER.fullmatch(part) or len(part) > 9:
            raise CelError(f'strconv.Atoi: parsing "{part}": invalid syntax')
    if not 0 <= int(minutes) <= 59:
        raise CelError(f"timezone offset minutes out of range [0, 59]: {name}")
    total = int(hours) * 60 + (-int(minutes) if hours.startswith("-") else int(minutes))
    if not -1440 < total < 1440:
        raise CelError(f"timezone offset out of range: {name}")
    return timezone(timedelta(minutes=total))


def _getter(part: Callable[[datetime, int], int]) -> Callable[..., int]:
    def run(value: Any, zone: Any = "UTC") -> int:
        seconds, nanos = divmod(value.nanos, 10**9)
        return part(in_zone(seconds, _zone(zone)), nanos)

    return run


def _duration_getter(unit: int) -> Callable[[Any], int]:
    def run(value: Any) -> int:
        whole = int(abs(value.nanos) // unit)
        return -whole if value.nanos < 0 else whole

    return run


def _function(name: str) -> Function:
    suffix, part = _PARTS[name]
    run = _getter(part)
    overloads = [
        Overload(f"timestamp_to_{suffix}", (TIMESTAMP,), INT, member=True, run=run),
        Overload(f"timestamp_to_{suffix}_with_tz", (TIMESTAMP, STRING), INT, member=True, run=run),
    ]
    if name in _DURATION_UNITS:
        duration = _duration_getter(_DURATION_UNITS[name])
        overloads.append(Overload(f"duration_to_{suffix}", (DURATION,), INT, member=True, run=duration))
    return Function(name, tuple(overloads))


FUNCTIONS: Final = tuple(_function(name) for name in _PARTS)
