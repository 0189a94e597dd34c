"""Texts of timestamps and durations, both ways (Go's time package as the language uses it)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

from extender.selectors.errors import CelError
from extender.selectors.values import INT64_MAX, INT64_MIN, Duration, Timestamp

MIN_SECONDS: Final = -62135596800
MAX_SECONDS: Final = 253402300799
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

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
            total += int(fraction) * scale // 10 ** len(fraction)
    if text.startswith("-"):
        total = -total
    return total if INT64_MIN <= total <= INT64_MAX else None


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
    leap = year == 0
    try:
        moment = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = (moment - EPOCH) // timedelta(seconds=1) - offset * 60
    if leap:
        seconds = MIN_SECONDS - 1
    nanos = int((match[7] or "")[:9].ljust(9, "0"))
    return Timestamp(seconds * 10**9 + nanos, offset)


def timestamp_text(value: Timestamp) -> str:
    """`string(timestamp)`: RFC 3339 with the zone that it was written in."""
    seconds, nanos = divmod(value.nanos, 10**9)
    moment = in_zone(seconds, timezone(timedelta(minutes=value.offset)))
    text = f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}"
    if nanos:
        text += "." + f"{nanos:09d}".rstrip("0")
    if not value.offset:
        return text + "Z"
    hours, minutes = divmod(abs(value.offset), 60)
    return f"{text}{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def in_zone(seconds: int, zone: Any) -> datetime:
    """A moment as a calendar shows it in a zone; moments at the calendar's ends stay in UTC."""
    moment = EPOCH + timedelta(seconds=seconds)
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):
        return moment
