"""Semantic versions (apiserver library/semverlib.go, version 1)."""

from __future__ import annotations

from typing import Any, Final

from extender.selectors.declarations import Function, Overload
from extender.selectors.errors import CelError
from extender.selectors.semver import Semver, SemverError
from extender.selectors.types import BOOL, INT, SEMVER, STRING


def _read(text: str, *, normalize: bool) -> Semver:
    return Semver.normalized(text) if normalize else Semver.parse(text)


def parse(text: Any, normalize: Any = False) -> Semver:
    """`semver(string)`, `semver(string, bool)`."""
    try:
        return _read(text, normalize=normalize)
    except SemverError as error:
        raise CelError(str(error)) from error


def _is_semver(text: Any, normalize: Any = False) -> bool:
    try:
        _read(text, normalize=normalize)
    except SemverError:
        return False
    return True


def _int64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


_PAIR: Final = (SEMVER, SEMVER)

FUNCTIONS: Final = (
    Function(
        "semver",
        (
            Overload("string_to_semver", (STRING,), SEMVER, run=parse),
            Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, run=parse),
        ),
    ),
    Function(
        "isSemver",
        (
            Overload("is_semver_string", (STRING,), BOOL, run=_is_semver),
            Overload("is_semver_string_bool", (STRING, BOOL), BOOL, run=_is_semver),
        ),
    ),
    Function(
        "isGreaterThan",
        (Overload("semver_is_greater_than", _PAIR, BOOL, member=True, run=lambda a, b: a.key > b.key),),
    ),
    Function(
        "isLessThan",
        (Overload("semver_is_less_than", _PAIR, BOOL, member=True, run=lambda a, b: a.key < b.key),),
    ),
    Function(
        "compareTo",
        (Overload("semver_compare_to", _PAIR, INT, member=True, run=lambda a, b: a.compare(b)),),
    ),
    Function(
        "major", (Overload("semver_major", (SEMVER,), INT, member=True, run=lambda v: _int64(v.major)),)
    ),
    Function(
        "minor", (Overload("semver_minor", (SEMVER,), INT, member=True, run=lambda v: _int64(v.minor)),)
    ),
    Function(
        "patch", (Overload("semver_patch", (SEMVER,), INT, member=True, run=lambda v: _int64(v.patch)),)
    ),
)
