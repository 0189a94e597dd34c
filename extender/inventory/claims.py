"""Claims, and the holders of every device.

kube-scheduler's own record is a set of devices; ours keeps who holds each one, so a device granted twice
stays taken when one of the two goes. Admin results hold nothing; results with a shareID are shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from extender.api.resource import DeviceRequestAllocationResult, ResourceClaim
from extender.inventory.sharedmap import SharedMap
from extender.model.device import DeviceID
from extender.model.ids import ObjectKey

Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Holding:
    """One result of one claim's allocation."""

    claim: ObjectKey
    claim_uid: str
    request: str
    share_id: str | None
    consumed: Mapping[str, str | int | float] | None


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A claim as last seen, and the devices that it holds."""

    claim: ResourceClaim
    holds: tuple[tuple[DeviceID, Holding], ...]


class ClaimTable:
    """Claims by namespace and name, holders by device; the ledger is its only writer."""

    def __init__(self) -> None:
        self.records: SharedMap[ObjectKey, ClaimRecord] = SharedMap()
        self.holders: SharedMap[DeviceID, tuple[Holding, ...]] = SharedMap()
        self.double_granted: set[DeviceID] = set()
        """Devices that several claims hold and do not share."""

    def upsert(self, claim: ResourceClaim) -> set[DeviceID]:
        """Add or update a claim; the devices whose holders changed."""
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        before = self.records.get(key)
        holds = tuple(claim_holdings(key, claim))
        self.records.set(key, ClaimRecord(claim, holds))
        if before is not None and before.holds == holds:
            return set()
        return self._change(before.holds if before is not None else (), holds)

    def delete(self, key: ObjectKey) -> set[DeviceID]:
        """Forget a claim; the devices that it held."""
        before = self.records.pop(key)
        return set() if before is None else self._change(before.holds, ())

    def _change(
        self,
        before: Iterable[tuple[DeviceID, Holding]],
        after: Iterable[tuple[DeviceID, Holding]],
    ) -> set[DeviceID]:
        changed: set[DeviceID] = set()
        for device, holding in before:
            left = list(self.holders.get(device) or ())
            left.remove(holding)
            if left:
                self.holders.set(device, tuple(left))
            else:
                self.holders.pop(device)
            changed.add(device)
        for device, holding in after:
            self.holders.set(device, (*(self.holders.get(device) or ()), holding))
            changed.add(device)
        for device in changed:
            if _double_granted(self.holders.get(device) or ()):
                self.double_granted.add(device)
            else:
                self.double_granted.discard(device)
        return changed


def _double_granted(held: Sequence[Holding]) -> bool:
    """Whether more than one claim holds a device, and at least one of them whole."""
    whole = any(holding.share_id is None for holding in held)
    return whole and any(holding.claim_uid != held[0].claim_uid for holding in held)


def claim_holdings(key: ObjectKey, claim: ResourceClaim) -> Iterable[tuple[DeviceID, Holding]]:
    """What a claim holds; admin results hold nothing."""
    allocation = claim.status.allocation
    if allocation is None:
        return
    for result in allocation.devices.results or ():
        if not result.admin_access:
            yield (
                _device_of(result),
                Holding(key, claim.metadata.uid, result.request, result.share_id, result.consumed_capacity),
            )


def _device_of(result: DeviceRequestAllocationResult) -> DeviceID:
    return DeviceID(result.driver, result.pool, result.device)
