"""Where the rooms at the edge meet: protocols only, satisfied in `__main__`.

Never: behaviour. An edge room may name what it needs from another edge room here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class ObjectSink(Protocol):
    """What a reflector feeds. Called on the event loop, in the order of the watch; never awaits.

    `kind` is the Kubernetes kind ("ResourceSlice"); objects are the structs of `extender.api`.
    """

    def replaced(self, kind: str, objects: Iterable[object], undecodable: Iterable[Undecodable]) -> None:
        """A full list has arrived: what it does not hold has vanished."""

    def upserted(self, kind: str, obj: object) -> None:
        """An object was added or modified."""

    def deleted(self, kind: str, obj: object) -> None:
        """An object was deleted; `obj` is its last state."""

    def undecodable(self, kind: str, what: Undecodable) -> None:
        """An object could not be read; whatever it may hold counts as taken."""


class Undecodable(Protocol):
    """An object that could not be decoded: its name, the raw bytes, and the fault."""

    @property
    def namespace(self) -> str:
        """Namespace, empty for cluster-scoped kinds or when even that can't be read."""

    @property
    def name(self) -> str:
        """Name, empty when even that can't be read."""

    @property
    def uid(self) -> str:
        """UID, empty when even that can't be read."""

    @property
    def raw(self) -> bytes:
        """The object as it came."""

    @property
    def fault(self) -> str:
        """What was wrong, with the path of the field."""
