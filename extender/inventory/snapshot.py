"""The ledger as it stood at one moment: immutable, made in microseconds, kept as long as anybody likes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.api.core import Namespace, Pod
from extender.api.resource import ResourceClaim
from extender.inventory.claims import ClaimRecord, Holding
from extender.inventory.classes import Classes
from extender.inventory.nodes import NodeColumns
from extender.inventory.occupancy import Occupancy
from extender.inventory.pods import PodRecord
from extender.inventory.sharedmap import SharedMap
from extender.inventory.topology import Topology
from extender.model.device import DeviceID
from extender.model.ids import ObjectKey


@dataclass(frozen=True, eq=False, slots=True)
class Snapshot:
    """Everything that a verb reads. `generation` grows with each change of the ledger."""

    generation: int
    topology: Topology
    occupancy: Occupancy
    nodes: NodeColumns
    classes: Classes
    claims: SharedMap[ObjectKey, ClaimRecord]
    holders: SharedMap[DeviceID, tuple[Holding, ...]]
    pods: SharedMap[str, PodRecord]
    pod_uids: SharedMap[ObjectKey, str]
    namespaces: Mapping[str, Namespace]

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim, None when the ledger has not seen it."""
        record = self.claims.get(ObjectKey(namespace, name))
        return None if record is None else record.claim

    def pod(self, uid: str) -> Pod | None:
        """A pod by UID, None when the ledger has not seen it."""
        record = self.pods.get(uid)
        return None if record is None else record.pod

    def pod_named(self, namespace: str, name: str) -> Pod | None:
        """A pod by its name, None when the ledger has not seen it."""
        uid = self.pod_uids.get(ObjectKey(namespace, name))
        return None if uid is None else self.pod(uid)

    def held_by(self, device: DeviceID) -> tuple[Holding, ...]:
        """Who holds a device."""
        return self.holders.get(device) or ()
