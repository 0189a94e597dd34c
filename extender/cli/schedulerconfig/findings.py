"""A finding, and the collector that gives each its line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from extender.model.document import Document, Path, dotted

Severity = Literal["error", "warning", "advice"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One trap: where it is, what happens because of it, and how to mend it.

    An error breaks scheduling or Berth's promises, a warning may, an advice makes things better.
    """

    severity: Severity
    line: int
    path: str
    happens: str
    mend: str


class Findings:
    """Collects findings about one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.found: list[Finding] = []

    def add(self, severity: Severity, path: Path, happens: str, mend: str) -> None:
        """Take down a finding at `path`, or at the line around it when the field is not written."""
        self.found.append(Finding(severity, self._document.line(path), dotted(path), happens, mend))


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping in the document, read field by field; a field of a wrong type reads as not given.

    Wrong types are the business of `fields.check_fields`, so that rules need not care.
    """

    values: dict[str, Any]
    path: Path

    def at(self, name: str) -> Path:
        """The path of a field."""
        return (*self.path, name)

    def text(self, name: str) -> str:
        """A text, "" when not given."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool:
        """A boolean, false when not given."""
        return self.values.get(name) is True

    def integer(self, name: str) -> int | None:
        """An integer, None when not given."""
        value = self.values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self, name: str) -> float | None:
        """A number, None when not given."""
        value = self.values.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def section(self, name: str) -> Fields:
        """A mapping, empty when not given."""
        value = self.values.get(name)
        return Fields(value if isinstance(value, dict) else {}, self.at(name))

    def items(self, name: str) -> list[Fields]:
        """The mappings in a list, none when not given."""
        value = self.values.get(name)
        if not isinstance(value, list):
            return []
        return [
            Fields(item, (*self.path, name, index))
            for index, item in enumerate(value)
            if isinstance(item, dict)
        ]
