"""Requests of a claim, checked and made ready for the search.

Owns upstream's validateDeviceRequest and the checks that come before any search, in its order and words:
which fields are required, the limit of devices for a claim, and what "all devices" means on a node.
Never: picking devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.api.resource import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

from .capacity import CapacityFault, fits
from .constraints import AttributeLookup, Constraint, DistinctScalar, DistinctSet, MatchScalar, MatchSet
from .evaluator import SelectorEvaluator
from .matching import Matcher, Selector, Shares, lookup_for
from .outcome import Abort
from .pools import Pools

MAX_RESULTS: Final = 32
"""Devices of one claim (API limit AllocationResultsMaxSize)."""


@dataclass(slots=True, eq=False)
class RequestPlan:
    """One request, or one alternative of a prioritized list, ready for the search."""

    claim: int
    name: str
    parent: str
    device_class: DeviceClass
    count: int
    matcher: Matcher
    tolerations: Sequence[DeviceToleration]
    shares: Shares | None
    """What a share takes; None without consumable capacity."""
    lookup: AttributeLookup
    admin: bool = False
    every: tuple[int, ...] | None = None
    """Indices of all devices that the request wants (mode All), None for ExactCount."""
    constraints: tuple[Constraint, ...] = ()

    @property
    def full_name(self) -> str:
        """The request's name in results: "request" or "request/subrequest"."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


@dataclass(slots=True, eq=False)
class ClaimPlan:
    """A claim: for each request its alternatives (one for a request without a prioritized list)."""

    claim: ResourceClaim
    requests: list[tuple[RequestPlan, ...]]
    prioritized: list[bool]


def claim_name(claim: ResourceClaim) -> str:
    """The claim as errors name it."""
    meta = claim.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Planner:
    """Checks claims one after the other and prepares them; raises Abort with upstream's text."""

    def __init__(
        self, classes: Mapping[str, DeviceClass], pools: Pools, evaluator: SelectorEvaluator
    ) -> None:
        self._classes = classes
        self._pools = pools
        self._evaluator = evaluator
        self._features = pools.features

    def plan(self, index: int, claim: ResourceClaim) -> ClaimPlan:
        """Prepare a claim."""
        plan = ClaimPlan(claim, [], [])
        least = 0
        spec = claim.spec.devices
        for request in spec.requests or ():
            self._check_features(claim, request)
            if request.first_available:
                alternatives = tuple(
                    self._request(index, claim, sub, sub.name, request.name)
                    for sub in request.first_available
                )
            else:
                exactly = request.exactly or ExactDeviceRequest()
                alternatives = (self._request(index, claim, exactly, request.name, ""),)
            fewest = min(alternative.count for alternative in alternatives)
            if fewest > MAX_RESULTS - least:
                raise Abort(
                    f"claim {claim_name(claim)}, request {request.name}: adding {fewest} devices exceeds the"
                    f" claim limit of {MAX_RESULTS}, with {least} already accounted for"
                )
            least += fewest
            plan.requests.append(alternatives)
            plan.prioritized.append(bool(request.first_available))
        self._add_constraints(claim, plan, spec.constraints or ())
        return plan

    def _check_features(self, claim: ResourceClaim, request: DeviceRequest) -> None:
        if not self._features.prioritized_list and request.first_available:
            raise Abort(
                f"claim {claim_name(claim)}, request {request.name}: has subrequests, but the"
                " DRAPrioritizedList feature is disabled"
            )
        if self._features.consumable_capacity:
            return
        disabled = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            raise Abort(f"claim {claim_name(claim)}, request {request.name}: {disabled}")
        for sub in request.first_available or ():
            if sub.capacity is not None:
                raise Abort(f"claim {claim_name(claim)}, subrequest {sub.name}: {disabled}")

    def _request(
        self,
        index: int,
        claim: ResourceClaim,
        wire: ExactDeviceRequest | DeviceSubRequest,
        name: str,
        parent: str,
    ) -> RequestPlan:
        where = f"claim {claim_name(claim)}, request {name}"
        derived = {attribute.name: attribute.expression for attribute in wire.derived_attributes or ()}
        if derived and not self._features.derived_attributes:
            raise Abort(f"{where}: cannot handle request with derived attributes, the feature is disabled")
        for position, selector in enumerate(wire.selectors or ()):
            if selector.cel is None:
                raise Abort(
                    f"{where}, selector #{position}: CEL expression empty (unsupported selector type?)"
                )
        admin = wire.admin_access if isinstance(wire, ExactDeviceRequest) else None
        if admin is not None and not self._features.admin_access:
            raise Abort(f"{where}: admin access is requested, but the feature is disabled")
        if not wire.device_class_name:
            raise Abort(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._classes.get(wire.device_class_name)
        if device_class is None:
            raise Abort(
                f"{where}: could not retrieve device class {wire.device_class_name}:"
                f' deviceclass.resource.k8s.io "{wire.device_class_name}" not found'
            )
        selectors = (
            *_selectors(f"class {device_class.metadata.name}", device_class.spec.selectors),
            *_selectors(f"claim {claim_name(claim)}", wire.selectors),
        )
        shares = None
        if self._features.consumable_capacity:
            shares = Shares(self._pools, (wire.capacity.requests if wire.capacity else None) or {})
        plan = RequestPlan(
            claim=index,
            name=name,
            parent=parent,
            device_class=device_class,
            count=wire.count,
            matcher=Matcher(self._pools, self._evaluator, selectors),
            tolerations=wire.tolerations or (),
            shares=shares,
            lookup=lookup_for(self._evaluator, derived),
            admin=bool(admin),
        )
        match wire.allocation_mode:
            case "ExactCount":
                pass
            case "All":
                plan.every = self._every_device(plan, where)
                plan.count = len(plan.every)
            case mode:
                raise Abort(f"{where}: unsupported count mode {mode}")
        return plan

    def _every_device(self, plan: RequestPlan, where: str) -> tuple[int, ...]:
        """All devices on the node that a request of mode All wants, in use or not."""
        wanted = []
        index = 0
        for pool in self._pools.pools:
            if not pool.usable:
                state = "being updated" if pool.incomplete else "invalid"
                raise Abort(
                    f"{where}: asks for all devices, but resource pool {pool.id} is currently {state}"
                )
            for candidate in pool.candidates:
                position, index = index, index + 1
                if not plan.matcher.matches(position):
                    continue
                if plan.shares is not None:
                    try:
                        consumption = plan.shares.consumption(position)
                    except CapacityFault as fault:
                        name = candidate.id.device
                        raise Abort(f"{where}: checking capacity for device {name}: {fault.text}") from fault
                    if consumption is None or not fits(consumption, candidate.capacities):
                        continue
                wanted.append(position)
        return tuple(wanted)

    def _add_constraints(
        self, claim: ResourceClaim, plan: ClaimPlan, constraints: Sequence[DeviceConstraint]
    ) -> None:
        by_list = self._features.list_type_attributes
        for position, wire in enumerate(constraints):
            constraint: Constraint
            if wire.match_attribute is not None:
                constraint = (MatchSet if by_list else MatchScalar)(wire.match_attribute)
            elif wire.distinct_attribute is not None:
                constraint = (DistinctSet if by_list else DistinctScalar)(wire.distinct_attribute)
            else:
                raise Abort(
                    f"claim {claim_name(claim)}, constraint #{position}: empty constraint"
                    " (unsupported constraint type?)"
                )
            named = frozenset(wire.requests or ())
            for alternatives in plan.requests:
                for request in alternatives:
                    if (
                        not named
                        or request.full_name in named
                        or (request.parent and request.parent in named)
                    ):
                        request.constraints += (constraint,)


def _selectors(where: str, selectors: Sequence[DeviceSelector] | None) -> list[Selector]:
    return [
        Selector(where, position, selector.cel.expression if selector.cel else None)
        for position, selector in enumerate(selectors or ())
    ]
