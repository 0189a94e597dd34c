"""Where the rooms at the edge meet: protocols only, satisfied in `__main__`.

Never: behaviour. An edge room may name what it needs from another edge room here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from extender.model.device import DeviceID
from extender.verbs.views import DecisionView, ExplainView, FleetView, GangView, Identity, NodeView


class ObjectSink(Protocol):
    """What a reflector feeds. Called on the event loop, in the order of the watch; never awaits.

    `kind` is the Kubernetes kind ("ResourceSlice"); objects are the structs of `extender.api`.
    """

    def replaced(self, kind: str, objects: Iterable[object], undecodable: Iterable[Undecodable]) -> None:
        """A full list has arrived: what it does not hold has vanished."""

    def upserted(self, kind: str, obj: object) -> None:
        """An object was added or modified.

        Raises:
            WireError: A value in it can't be read; the reflector then reports it as undecodable.
        """

    def deleted(self, kind: str, obj: object) -> None:
        """An object was deleted; `obj` is its last state, or a PartialObject where that can't be read."""

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


class TokenAuthenticator(Protocol):
    """Who a bearer token speaks for."""

    async def authenticate(self, token: str, audience: str) -> Identity | None:
        """The identity behind `token` if it is valid for `audience`, else None.

        Raises:
            KubeError: The API server could not be asked.
        """


class Authorizer(Protocol):
    """Whether somebody may read a path."""

    async def allowed(self, identity: Identity, verb: str, path: str) -> bool:
        """Whether `identity` may do `verb` ("get", "post") on the non-resource URL `path`.

        Raises:
            KubeError: The API server could not be asked.
        """


class QuarantineRules(Protocol):
    """Taint rules of ours, one a device. Every write first asks whether the Lease is still ours."""

    async def ours(self) -> Mapping[DeviceID, str]:
        """Names of our rules by device.

        Raises:
            KubeError: The API server could not be asked.
        """

    async def taint(self, device: DeviceID, reason: str) -> str | None:
        """Keep new pods off a device; the rule's name, None when it was not ours to write.

        Raises:
            KubeError: The API server refused or was not reached.
        """

    async def clear(self, name: str) -> bool:
        """Delete a rule of ours; False when the Lease is not ours any more.

        Raises:
            KubeError: The API server refused or was not reached.
        """


class ReadDesk(Protocol):
    """What the read API and the command line show. Synchronous, called on the event loop, changes nothing."""

    def fleet(self, after: str, limit: int) -> FleetView:
        """At most `limit` nodes by name, those after `after` ("" = from the first)."""

    def node(self, name: str) -> NodeView | None:
        """A node with its devices, None when there is none of that name."""

    def decisions(self, limit: int, pod: str) -> Sequence[DecisionView]:
        """The newest decisions first; `pod` ("" = all) is a UID, a name or namespace/name."""

    def gangs(self) -> Sequence[GangView]:
        """Every gang that is known."""

    def explain(self, pod: Mapping[str, object], nodes: Sequence[str], limit: int) -> ExplainView:
        """What filter and prioritize would say to this pod document.

        Args:
            pod: A core/v1 Pod as decoded JSON.
            nodes: Names of the candidates, empty for all nodes.
            limit: How many nodes to describe.

        Raises:
            WireError: The document is no pod; the text names the field.
        """

    def explain_existing(
        self, namespace: str, name: str, nodes: Sequence[str], limit: int
    ) -> ExplainView | None:
        """Likewise for a pod that the ledger knows; None when it does not."""
