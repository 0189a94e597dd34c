"""A sink that notes what it was told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from extender.verbs.ports import Undecodable


@dataclass
class Told:
    """Events in order: what, kind, name."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)

    def replaced(self, kind: str, objects: Iterable[object], undecodable: Iterable[Undecodable]) -> None:
        assert not list(undecodable)
        self.lists[kind] = list(objects)

    def upserted(self, kind: str, obj: Any) -> None:
        self.events.append(("upserted", kind, obj.metadata.name))

    def deleted(self, kind: str, obj: Any) -> None:
        self.events.append(("deleted", kind, obj.metadata.name))

    def undecodable(self, kind: str, what: Undecodable) -> None:
        raise AssertionError(kind, what)
