"""The common base of every wire struct."""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A wire shape: immutable, camelCase on the wire, and outside the garbage collector.

    `gc=False` is safe because decoded objects are trees: none can point back at itself.
    """
