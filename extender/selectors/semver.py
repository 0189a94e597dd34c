"""Semantic versions as github.com/blang/semver/v4 reads and orders them.

Owns parsing (strict and normalising) and order. Build metadata never matters for either.
"""

from __future__ import annotations

import re
from typing import Final

_DIGITS: Final = re.compile(r"[0-9]+")
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]+")
_UINT64_MAX: Final = (1 << 64) - 1


class SemverError(ValueError):
    """The text is no version. The message is upstream's."""


class Semver:
    """An immutable version."""

    __slots__ = ("build", "key", "major", "minor", "patch", "pre")

    def __init__(
        self, core: tuple[int, int, int], pre: tuple[int | str, ...] = (), build: tuple[str, ...] = ()
    ) -> None:
        self.major, self.minor, self.patch = core
        self.pre = pre
        self.build = build
        # Numbers order before texts; a release after all its pre-releases.
        order = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in pre)
        self.key = (*core, 0 if pre else 1, order)

    @classmethod
    def parse(cls, text: str) -> Semver:
        """Read a strict version; raise SemverError."""
        if not text:
            raise SemverError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise SemverError("No Major.Minor.Patch elements found")
        major = _number(parts[0], "major")
        minor = _number(parts[1], "minor")
        patch, build, pre = parts[2], "", ""
        has_build = "+" in patch
        if has_build:
            patch, _, build = patch.partition("+")
        has_pre = "-" in patch
        if has_pre:
            patch, _, pre = patch.partition("-")
        number = _number(patch, "patch")
        return cls(
            (major, minor, number),
            tuple(_pre_release(part) for part in pre.split(".")) if has_pre else (),
            tuple(_build(part) for part in build.split(".")) if has_build else (),
        )

    @classmethod
    def normalized(cls, text: str) -> Semver:
        """Read a version after dropping a leading v and zeros and adding missing parts."""
        parts = text.removeprefix("v").split(".", 2)
        for place, part in enumerate(parts):
            if len(part) > 1:
                stripped = part.lstrip("0")
                if not stripped or stripped[0] not in "0123456789":
                    stripped = "0" + stripped
                parts[place] = stripped
        if len(parts) < 3:
            if "+" in parts[-1] or "-" in parts[-1]:
                raise SemverError("short version cannot contain PreRelease/Build meta data")
            parts += ["0"] * (3 - len(parts))
        return cls.parse(".".join(parts))

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1 by precedence."""
        return (self.key > other.key) - (self.key < other.key)

    def same_as(self, other: Semver) -> bool:
        """Equal by precedence."""
        return self.key == other.key

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.pre:
            text += "-" + ".".join(str(part) for part in self.pre)
        if self.build:
            text += "+" + ".".join(self.build)
        return text


def _number(text: str, what: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if not _DIGITS.fullmatch(text):
        raise SemverError(f'Invalid character(s) found in {what} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f'{what.capitalize()} number must not contain leading zeroes "{text}"')
    if len(text) > 20 or int(text) > _UINT64_MAX:
        raise SemverError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _pre_release(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        if len(text) > 20 or int(text) > _UINT64_MAX:
            raise SemverError(f'strconv.ParseUint: parsing "{text}": value out of range')
        return int(text)
    if not _IDENTIFIER.fullmatch(text):
        raise SemverError(f'Invalid character(s) found in prerelease "{text}"')
    return text


def _build(text: str) -> str:
    if not text:
        raise SemverError("Build meta data is empty")
    if not _IDENTIFIER.fullmatch(text):
        raise SemverError(f'Invalid character(s) found in build meta data "{text}"')
    return text
