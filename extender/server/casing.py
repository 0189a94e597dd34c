"""Whether a document spells a known key in a casing of its own, as Go's decoder takes it and ours does not.

A key that the strict decoder does not know is skipped there, and what it held would be missing, unnoticed.
Keys are remembered once judged, so that the pods of a cluster, whose keys repeat, cost one look at each key.
Never: a decoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_KEY = re.compile(rb'"([A-Za-z]+)"\s*:')
_MOST = 10_000
"""Harmless keys that are remembered: labels and annotations bring their own."""


class Casing:
    """The keys of `shape`, a struct, and of all structs in it."""

    def __init__(self, shape: type[msgspec.Struct]) -> None:
        self._known = frozenset(name.encode() for name in _names(msgspec.inspect.type_info(shape)))
        self._folded = frozenset(map(bytes.lower, self._known))
        self._harmless = set(self._known)

    def odd(self, text: bytes) -> bool:
        """Whether a key in `text` differs from a known one by case alone.

        A label or annotation that happens to do so counts too: the tolerant decoder leaves those alone.
        """
        unseen = set(_KEY.findall(text)) - self._harmless
        if not unseen:
            return False
        odd = {key for key in unseen if key.lower() in self._folded}
        if len(self._harmless) > _MOST:
            self._harmless = set(self._known)
        self._harmless |= unseen - odd
        return bool(odd)


def _names(info: msgspec.inspect.Type) -> Iterator[str]:
    match info:
        case msgspec.inspect.StructType(fields=fields):
            for field in fields:
                yield field.encode_name
                yield from _names(field.type)
        case msgspec.inspect.UnionType(types=types):
            for each in types:
                yield from _names(each)
        case msgspec.inspect.ListType(item_type=inner) | msgspec.inspect.DictType(value_type=inner):
            yield from _names(inner)
        case _:
            return
