"""Texts of timestamps and durations, both ways (Go's time package as the language uses it)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final

from extender.selectors.errors import CelError
from extender.selectors.values import INT64_MAX, INT64_MIN, Duration, Timestamp

MIN_SECONDS: Final = -62135596800
MAX_SECONDS: Final = 253402300799
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_CYCLE_YEARS: Final = 400
"""Dates, leap years and weekdays repeat after so many years."""
_CYCLE_SECONDS: Final = 146_097 * 86_400
_LAST_CYCLE: Final = 23
"""The last cycle that is wholly before the year 10000."""
_TWO_DAYS: Final = 2 * 86_400

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION: Final = re.compile(
    r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)"
)
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


def parse_duration(text: Any) -> Duration:
    """`duration(string)`."""
    nanos = duration_nanos(text)
    if nanos is None:
        raise CelError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return Duration(nanos)


def duration_nanos(text: str) -> int | None:
    """Nanoseconds of a duration text, or None."""
    if len(text) > 4000 or not _DURATION.fullmatch(text):
        return None
    total = 0
    for whole, fraction, unit in _DURATION_PART.findall(text):
        scale = _UNITS[unit]
        total += int(whole or "0") * scale
        if fraction:
            total += _fraction_nanos(fraction, scale)
    if text.startswith("-"):
        total = -total
    return total if INT64_MIN <= total <= INT64_MAX else None


def _fraction_nanos(digits: str, unit: int) -> int:
    """Nanoseconds of the places behind a dot, with Go's rounding over float64 (time.leadingFraction)."""
    value, scale = 0, 1.0
    for digit in digits:
        longer = value * 10 + int(digit)
        if value > INT64_MAX // 10 or longer > INT64_MAX + 1:
            break
        value, scale = longer, scale * 10
    return int(float(value) * (float(unit) / scale))


def duration_text(value: Duration) -> str:
    """`string(duration)`: seconds without exponent."""
    # Go goes over float64 seconds: whole part plus fraction.
    whole, rest = divmod(abs(value.nanos), 10**9)
    text = format(Decimal(repr(float(whole) + float(rest) / 1e9)), "f").removesuffix(".0")
    return f"{'-' if value.nanos < 0 else ''}{text}s"


def timestamp_of_seconds(seconds: Any) -> Timestamp:
    """`timestamp(int)`."""
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise CelError("timestamp overflow")
    return Timestamp(seconds * 10**9)


def parse_timestamp(text: Any) -> Timestamp:
    """`timestamp(string)`."""
    value = timestamp_value(text)
    if value is None:
        raise CelError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    if not MIN_SECONDS <= value.nanos // 10**9 <= MAX_SECONDS:
        raise CelError("timestamp overflow")
    return value


def timestamp_value(text: str) -> Timestamp | None:
    """The timestamp of an RFC 3339 text, or None."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    offset = 0
    if match[8]:
        if int(match[9]) > 24 or int(match[10]) >= 60:
            return None
        offset = (int(match[9]) * 60 + int(match[10])) * (-1 if match[8] == "-" else 1)
    try:
        moment = datetime(year or _CYCLE_YEARS, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = (moment - EPOCH) // timedelta(seconds=1) - offset * 60
    if year == 0:
        seconds -= _CYCLE_SECONDS
    nanos = int((match[7] or "")[:9].ljust(9, "0"))
    return Timestamp(seconds * 10**9 + nanos, offset)


def timestamp_text(value: Timestamp) -> str:
    """`string(timestamp)`: RFC 3339 with the zone that it was written in."""
    seconds, nanos = divmod(value.nanos, 10**9)
    moment, years = calendar(seconds + value.offset * 60)
    year = moment.year + years
    text = f"{'-' if year < 0 else ''}{abs(year):04d}-{moment:%m-%dT%H:%M:%S}"
    if nanos:
        text += "." + f"{nanos:09d}".rstrip("0")
    if not value.offset:
        return text + "Z"
    hours, minutes = divmod(abs(value.offset), 60)
    return f"{text}{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def calendar(seconds: int) -> tuple[datetime, int]:
    """Date and time after that many seconds of local time since 1970, and what to add to the year.

    A zone can lead out of the years 1 to 9999, which is all that datetime has.
    """
    cycles, rest = divmod(seconds - MIN_SECONDS, _CYCLE_SECONDS)
    return _FIRST + timedelta(seconds=rest), cycles * _CYCLE_YEARS


def zone_offset(seconds: int, zone: tzinfo) -> int:
    """Seconds that a zone is east of UTC at an instant.

    Before a zone's first transition all instants are alike, and after its last one the rules repeat with the
    calendar, so that the ends of datetime's years are looked up inside of them.
    """
    cycles, rest = divmod(seconds - MIN_SECONDS, _CYCLE_SECONDS)
    inside = max(min(cycles, _LAST_CYCLE) * _CYCLE_SECONDS + rest, _TWO_DAYS)
    offset = (_FIRST + timedelta(seconds=inside)).astimezone(zone).utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)
