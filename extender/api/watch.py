"""Watch and list envelopes: the object stays raw until its kind's decoder has it."""

from __future__ import annotations

import msgspec

from extender.api.base import Wire
from extender.api.meta import ListMeta, ObjectMeta


class WatchEvent(Wire, frozen=True, gc=False):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw()


class RawList(Wire, frozen=True, gc=False):
    """A page of a list with its items undecoded."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class PartialObject(Wire, frozen=True, gc=False):
    """Only the metadata of an object: enough for a bookmark, or to name what can't be decoded."""

    metadata: ObjectMeta = ObjectMeta()


class StatusObject(Wire, frozen=True, gc=False):
    """metav1.Status, which an ERROR event or a failed call carries."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
