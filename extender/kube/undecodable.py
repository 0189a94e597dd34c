"""What is left of an object that can't be decoded: whatever names it, and its bytes.

Owns: reading a name out of a broken object. Never: guesses what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from extender.api.meta import ObjectMeta
from extender.api.watch import PartialObject

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Everything that a msgspec decoder raises for bad input."""


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """Satisfies `extender.verbs.ports.Undecodable`."""

    namespace: str
    name: str
    uid: str
    raw: bytes
    fault: str
    resource_version: str = ""

    @property
    def partial(self) -> PartialObject:
        """Its metadata as an object, for a deletion."""
        return PartialObject(
            metadata=ObjectMeta(
                name=self.name,
                namespace=self.namespace,
                uid=self.uid,
                resource_version=self.resource_version,
            )
        )


def undecodable(raw: bytes, error: Exception) -> UndecodableObject:
    """Describe an object that its kind's decoder refused with `error`."""
    try:
        whole = msgspec.json.decode(raw)
    except DECODE_ERRORS:
        whole = None
    metadata = whole.get("metadata") if isinstance(whole, dict) else None
    if not isinstance(metadata, dict):
        metadata = {}

    def text(key: str) -> str:
        value = metadata.get(key)
        return value if isinstance(value, str) else ""

    return UndecodableObject(
        namespace=text("namespace"),
        name=text("name"),
        uid=text("uid"),
        raw=bytes(raw),
        fault=f"{type(error).__name__}: {error}",
        resource_version=text("resourceVersion"),
    )
