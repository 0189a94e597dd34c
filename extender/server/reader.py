"""The read desk (`verbs.ports.ReadDesk`): views made from the ledger of now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from extender.api.core import Pod
from extender.inventory.ledger import Ledger
from extender.inventory.outlook import Lookout
from extender.model.errors import WireError
from extender.observability.decisions import DecisionRing
from extender.server.standing import Switch
from extender.verbs.counting import DeviceCounter
from extender.verbs.desk import Desk
from extender.verbs.explain import explain
from extender.verbs.fleet import fleet, node_view
from extender.verbs.views import DecisionView, ExplainView, FleetView, GangView, NodeView


class Reader:
    """Answers people and tools; changes nothing."""

    def __init__(
        self,
        ledger: Ledger,
        desk: Desk,
        ring: DecisionRing,
        switch: Switch,
        clock: Callable[[], float],
        *,
        lookout: Lookout | None = None,
    ) -> None:
        """`lookout`: the live telemetry, of the same clock; without it none is shown."""
        self._ledger = ledger
        self._desk = desk
        self._ring = ring
        self._switch = switch
        self._clock = clock
        self._lookout = lookout
        self._counter = DeviceCounter()

    def fleet(self, after: str, limit: int) -> FleetView:
        """At most `limit` nodes by name, those after `after`."""
        return fleet(
            self._ledger.snapshot(), after, limit, self._lookout, self._clock(), counter=self._counter
        )

    def node(self, name: str) -> NodeView | None:
        """A node with its devices."""
        return node_view(self._ledger.snapshot(), name, self._lookout, self._clock())

    def decisions(self, limit: int, pod: str) -> Sequence[DecisionView]:
        """The newest decisions first."""
        return self._ring.newest(limit, pod)

    def gangs(self) -> Sequence[GangView]:
        """No gang is planned yet: kube-scheduler places pods one by one, or as its own PodGroups."""
        return ()

    def explain(self, pod: Mapping[str, object], nodes: Sequence[str], limit: int) -> ExplainView:
        """What filter and prioritize would say to this pod document.

        Raises WireError, naming the field, for a document that is no pod.
        """
        try:
            decoded = msgspec.convert(pod, Pod)
        except msgspec.ValidationError as error:
            raise WireError(f"pod: {error}") from error
        if not decoded.spec.containers:
            raise WireError("pod: `$.spec.containers` is empty")
        return self._explained(_as_stored(decoded), nodes, limit)

    def explain_existing(
        self, namespace: str, name: str, nodes: Sequence[str], limit: int
    ) -> ExplainView | None:
        """Likewise for a pod that the ledger knows."""
        record = self._ledger.pod_by_name(namespace, name)
        return None if record is None else self._explained(record.pod, nodes, limit)

    def _explained(self, pod: Pod, nodes: Sequence[str], limit: int) -> ExplainView:
        snapshot = self._ledger.snapshot()
        now = self._clock()
        return explain(
            self._desk,
            pod,
            list(nodes) or sorted(snapshot.topology.slot_of),
            snapshot,
            assumptions=self._ledger.in_flight.assumptions(now),
            now=now,
            enforce=self._switch.enforce(),
            shadow=self._switch.shadow(),
            limit=limit,
            lookout=self._lookout,
        )


def _as_stored(pod: Pod) -> Pod:
    """The pod with what an API server fills in; people leave it out."""
    meta, spec = pod.metadata, pod.spec
    return replace(
        pod,
        metadata=meta if meta.namespace else replace(meta, namespace="default"),
        spec=spec if spec.scheduler_name else replace(spec, scheduler_name="default-scheduler"),
    )
