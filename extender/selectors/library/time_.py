"""Parts of timestamps and durations: getFullYear to getMilliseconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.library.instants import calendar, zone_offset
from extender.selectors.types import DURATION, INT, STRING, TIMESTAMP
from extender.selectors.values import INT64_MAX, INT64_MIN

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,4000}")
_MINUTE: Final = 60 * 10**9

_PARTS: Final[dict[str, tuple[str, Callable[[datetime, int, int], int]]]] = {
    "getFullYear": ("year", lambda moment, years, _nanos: moment.year + years),
    "getMonth": ("month", lambda moment, _years, _nanos: moment.month - 1),
    "getDayOfYear": ("day_of_year", lambda moment, _years, _nanos: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": ("day_of_month", lambda moment, _years, _nanos: moment.day - 1),
    "getDate": ("day_of_month_1_based", lambda moment, _years, _nanos: moment.day),
    "getDayOfWeek": ("day_of_week", lambda moment, _years, _nanos: moment.isoweekday() % 7),
    "getHours": ("hours", lambda moment, _years, _nanos: moment.hour),
    "getMinutes": ("minutes", lambda moment, _years, _nanos: moment.minute),
    "getSeconds": ("seconds", lambda moment, _years, _nanos: moment.second),
    "getMilliseconds": ("milliseconds", lambda _moment, _years, nanos: nanos // 10**6),
}
_DURATION_UNITS: Final = {
    "getHours": 3600 * 10**9,
    "getMinutes": _MINUTE,
    "getSeconds": 10**9,
    "getMilliseconds": 10**6,
}


def _east(zone: str, seconds: int) -> int:
    """Seconds that a zone, named or "hours:minutes", is east of UTC at an instant (cel-go inTimeZone)."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        if zone in {"", "UTC", "Local"}:  # a scheduler's own zone is UTC
            return 0
        try:
            return zone_offset(seconds, ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise CelError(f"unknown time zone {zone}") from None
    shift = _integer(minutes) if not hours.startswith("-") else -_integer(minutes)
    # No hour or minute is too large upstream: nanoseconds wrap around as int64.
    nanos = _wrapped(_wrapped(_integer(hours) * 60 + shift) * _MINUTE)
    return nanos // 10**9 if nanos >= 0 else -(-nanos // 10**9)


def _integer(text: str) -> int:
    value = int(text) if _INTEGER.fullmatch(text) else None
    if value is None:
        raise CelError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    if not INT64_MIN <= value <= INT64_MAX:
        raise CelError(f'strconv.Atoi: parsing "{text}": value out of range')
    return value


def _wrapped(value: int) -> int:
    return (value - INT64_MIN) % (1 << 64) + INT64_MIN


def _getter(part: Callable[[datetime, int, int], int]) -> Callable[..., int]:
    def run(value: Any, zone: Any = "UTC") -> int:
        seconds, nanos = divmod(value.nanos, 10**9)
        moment, years = calendar(seconds + _east(zone, seconds))
        return part(moment, years, nanos)

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
