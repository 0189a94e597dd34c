"""metav1: object and list metadata, owner references, label selectors, conditions."""

from __future__ import annotations

import msgspec

from extender.api.base import Wire


class OwnerReference(Wire, frozen=True, gc=False):
    """The object that owns another."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(Wire, frozen=True, gc=False):
    """What every object carries; times stay RFC 3339 text until somebody needs them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class ListMeta(Wire, frozen=True, gc=False):
    """Metadata of a list: where it stands, and where the next page starts."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Requirement(Wire, frozen=True, gc=False):
    """A node or label selector requirement: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Wire, frozen=True, gc=False):
    """metav1.LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


class Condition(Wire, frozen=True, gc=False):
    """A condition of any object; `status` is True, False or Unknown."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
