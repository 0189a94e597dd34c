"""The search: first fit, depth first, over claims, requests and devices.

Owns upstream's allocateOne and allocateDevice: the order of attempts, what is taken and given back, and when
alternatives of a prioritized list are tried. Works on a stack of its own, so depth is no limit.
Never: preparing requests, or writing results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from extender.model.device import DeviceID

from .candidates import Candidate
from .capacity import CapacityFault, fits
from .counters import CounterLedger, Reservation
from .outcome import Abort
from .pools import Pools
from .requests import MAX_RESULTS, ClaimPlan, RequestPlan, claim_name
from .state import AllocatedState, Consumption, merged
from .taints import tolerated

_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
"""The node feature without which slices with skipNodeOperations are left out."""

Interrupted = Callable[[], str | None]
"""Answers None to go on, else why the attempt must end ("context deadline exceeded")."""


class OutOfSteps(Exception):  # noqa: N818 - control flow between search and door
    """The step bound was reached."""


class Picked(NamedTuple):
    """A device that the search has taken for a request, and how to give it back."""

    request: RequestPlan
    candidate: Candidate
    consumption: Consumption | None
    """Set for a share of a device that allows multiple allocations."""
    reservation: Reservation | None
    shared_before: Consumption | None
    """What this attempt had taken of the device before; None for a first share."""


class _Place(NamedTuple):
    """Which device of which request is looked for, from which candidate on."""

    claim: int
    request: int = 0
    alternative: int = 0
    device: int = 0
    start: int = 0
    chosen: bool = False
    """True when the alternative is settled, so that its list is not entered again."""

    def after(self, start: int) -> _Place:
        """The next device of the same request."""
        return _Place(self.claim, self.request, self.alternative, self.device + 1, start, self.chosen)


class _Frame:
    """A decision that can be taken back: a device, an alternative, or the border before the next claim."""

    __slots__ = ("all_exceeded", "at", "kind", "next")

    def __init__(self, kind: int, at: _Place, next_: int = 0) -> None:
        self.kind = kind
        self.at = at
        self.next = next_
        self.all_exceeded = True


_CLAIM, _ALTERNATIVE, _EVERY, _DEVICE = range(4)
_NO, _EXCEEDED = False, None
"""Outcomes of a subtree: no solution, or none within the limit of results."""


class Search:
    """One attempt for one node. Arguments are read only; all running state is in this object."""

    def __init__(
        self,
        pools: Pools,
        claims: Sequence[ClaimPlan],
        in_use: AllocatedState,
        limit: int,
        interrupted: Interrupted,
    ) -> None:
        self._candidates = pools.candidates
        self._features = pools.features
        self._checks_operations = pools.features.needs_experimental
        self._skips_operations = pools.features.optional_node_operations and _NODE_OPERATIONS in (
            pools.node.status.declared_features or ()
        )
        self._claims = claims
        self._in_use = in_use
        self._limit = limit
        self._interrupted = interrupted
        self._ledger = CounterLedger(pools.by_id, in_use, with_groups=pools.features.compatibility_groups)
        self._taken: dict[DeviceID, int] = {}
        self._sharing: dict[DeviceID, Consumption] = {}
        self.steps = 0
        self.picked: list[list[Picked]] = [[] for _ in claims]
        self.selected: list[list[int]] = [[0] * len(claim.requests) for claim in claims]

    def run(self) -> bool:
        """Search; True leaves the solution in `picked` and `selected`. Raise Abort or OutOfSteps."""
        stack: list[_Frame] = []
        place: _Place | None = _Place(0)
        while place is not None:
            if self.steps >= self._limit:
                raise OutOfSteps
            self.steps += 1
            cause = self._interrupted()
            if cause is not None:
                raise Abort(f"filter operation aborted: {cause}", "interrupted")
            if place.claim >= len(self._claims):
                return True
            outcome = self._descend(place, stack)
            place = (
                outcome if isinstance(outcome, _Place) else self._unwind(stack, exceeded=outcome is _EXCEEDED)
            )
        return False

    def _descend(self, place: _Place, stack: list[_Frame]) -> _Place | bool | None:
        """Take the next decision; answer where to go on, or that there is no way from here."""
        claim = self._claims[place.claim]
        if place.request >= len(claim.requests):
            stack.append(_Frame(_CLAIM, place))
            return _Place(place.claim + 1)
        if claim.prioritized[place.request] and not place.chosen:
            stack.append(_Frame(_ALTERNATIVE, place))
            return self._alternative(place, 0)
        request = claim.requests[place.request][place.alternative]
        if request.every is not None and not request.every:
            return _NO  # mode All needs at least one device
        if place.device >= request.count:
            return _Place(place.claim, place.request + 1)
        if request.count - place.device > MAX_RESULTS - len(self.picked[place.claim]):
            return _EXCEEDED
        return self._pick(request, place, stack)

    def _pick(self, request: RequestPlan, place: _Place, stack: list[_Frame]) -> _Place | bool:
        if request.every is not None:
            if not self._take(request, request.every[place.device], must=True):
                return _NO  # the order of all devices does not matter: there is no other way
            stack.append(_Frame(_EVERY, place))
            return place.after(0)
        found = self._next(request, place.start)
        if found < 0:
            return _NO
        stack.append(_Frame(_DEVICE, place, found + 1))
        return place.after(found + 1)

    def _unwind(self, stack: list[_Frame], *, exceeded: bool) -> _Place | None:
        """Take decisions back until another one is possible; None when there is none left.

        `exceeded` says that everything below failed only because a claim would get too many devices: then
        other devices for earlier requests can't help, only other alternatives can.
        """
        while stack:
            frame = stack[-1]
            place = frame.at
            if frame.kind == _CLAIM:
                exceeded = False  # another alternative of an earlier claim may leave smaller ones here
            elif frame.kind == _ALTERNATIVE:
                frame.all_exceeded = frame.all_exceeded and exceeded
                frame.next += 1
                if frame.next < len(self._claims[place.claim].requests[place.request]):
                    return self._alternative(place, frame.next)
                exceeded = frame.all_exceeded
            else:
                self._give_back(place.claim)
                if frame.kind == _DEVICE and not exceeded:
                    request = self._claims[place.claim].requests[place.request][place.alternative]
                    found = self._next(request, frame.next)
                    if found >= 0:
                        frame.next = found + 1
                        return place.after(found + 1)
            stack.pop()
        if exceeded:
            raise Abort("allocation max size exceeded")
        return None

    def _alternative(self, place: _Place, index: int) -> _Place:
        self.selected[place.claim][place.request] = index
        return _Place(place.claim, place.request, index, chosen=True)

    def _next(self, request: RequestPlan, start: int) -> int:
        """Take the first usable candidate from `start` on; answer its index, -1 when there is none."""
        candidates = self._candidates
        matches = request.matcher.matches
        for index in range(start, len(candidates)):
            if (
                not self._unavailable(request, candidates[index])
                and matches(index)
                and (request.shares is None or self._has_room(request, index, "checking"))
                and self._take(request, index, must=False)
            ):
                return index
        return -1

    def _unavailable(self, request: RequestPlan, candidate: Candidate) -> bool:
        """Whether the device is dedicated already: to anybody, or with admin access to the same claim."""
        claims = self._taken.get(candidate.id, 0)
        if request.admin:
            return bool(claims >> request.claim & 1)
        return bool(claims) or self._in_use.holds(candidate.id)

    def _has_room(self, request: RequestPlan, index: int, verb: str) -> bool:
        """Whether what the request takes of the device is still there; a fault aborts in upstream's words."""
        consumption = self._consumption(request, index, verb)
        if consumption is None:
            return False
        candidate = self._candidates[index]
        device = candidate.id
        return fits(
            consumption, candidate.capacities, self._in_use.consumed(device), self._sharing.get(device)
        )

    def _consumption(self, request: RequestPlan, index: int, verb: str) -> Consumption | None:
        assert request.shares is not None
        try:
            return request.shares.consumption(index)
        except CapacityFault as fault:
            raise Abort(
                f"claim {self._claim_name(request)}, request {request.name}: {verb} capacity for device"
                f" {self._candidates[index].id}: {fault.text}"
            ) from fault

    def _take(self, request: RequestPlan, index: int, *, must: bool) -> bool:
        """Take a selectable device for a request if everything allows it; leave no trace if not.

        `must` (mode All) means that availability and capacity were not looked at yet, and that a violated
        constraint is an error: no other device could do.
        """
        candidate = self._candidates[index]
        if (must and self._unavailable(request, candidate)) or not self._permitted(candidate):
            return False
        shared = self._features.consumable_capacity and candidate.allow_multiple
        reservation = None
        if candidate.uses and not (shared and self._is_shared(candidate.id)):
            reservation = self._ledger.reserve(candidate)
            if reservation is None:
                return False
        allowed = self._tolerated(request, candidate) and self._constrain(request, candidate, must=must)
        if (
            allowed
            and must
            and request.shares is not None
            and not self._has_room(request, index, "rechecking")
        ):
            self._unconstrain(request, len(request.constraints))
            allowed = False
        if not allowed:
            if reservation is not None:
                reservation.undo()
            return False
        self._record(
            request,
            candidate,
            self._consumption(request, index, "computing consumed") if shared else None,
            reservation,
        )
        return True

    def _permitted(self, candidate: Candidate) -> bool:
        """Whether the features in use allow devices of this kind at all."""
        if candidate.uses and not self._features.partitionable_devices:
            return False
        return not (
            self._checks_operations
            and candidate.slice.spec.skip_node_operations
            and not self._skips_operations
        )

    def _is_shared(self, device: DeviceID) -> bool:
        """Whether a share of the device exists, so that its counters are charged already."""
        return device in self._sharing or self._in_use.shares(device)

    def _tolerated(self, request: RequestPlan, candidate: Candidate) -> bool:
        return (
            not candidate.taints
            or not self._features.device_taints
            or tolerated(candidate.taints, request.tolerations)
        )

    def _constrain(self, request: RequestPlan, candidate: Candidate, *, must: bool) -> bool:
        for position, constraint in enumerate(request.constraints):
            if not constraint.add(candidate, request.lookup):
                if must:
                    raise Abort(
                        f"claim {self._claim_name(request)}, request {request.name}: cannot add device"
                        f" {candidate.id} because a claim constraint would not be satisfied"
                    )
                self._unconstrain(request, position)
                return False
        return True

    @staticmethod
    def _unconstrain(request: RequestPlan, count: int) -> None:
        """Take the last device out of the first `count` constraints of the request."""
        for constraint in reversed(request.constraints[:count]):
            constraint.remove()

    def _claim_name(self, request: RequestPlan) -> str:
        return claim_name(self._claims[request.claim].claim)

    def _record(
        self,
        request: RequestPlan,
        candidate: Candidate,
        consumption: Consumption | None,
        reservation: Reservation | None,
    ) -> None:
        before = None
        if consumption is None:
            self._taken[candidate.id] = self._taken.get(candidate.id, 0) | 1 << request.claim
        else:
            before = self._sharing.get(candidate.id)
            self._sharing[candidate.id] = merged(before or {}, consumption)
        self.picked[request.claim].append(Picked(request, candidate, consumption, reservation, before))

    def _give_back(self, claim: int) -> None:
        """Undo the last device of a claim, in the opposite order of taking."""
        request, candidate, consumption, reservation, before = self.picked[claim].pop()
        if consumption is None:
            self._taken[candidate.id] &= ~(1 << claim)
        elif before is None:
            del self._sharing[candidate.id]
        else:
            self._sharing[candidate.id] = before
        self._unconstrain(request, len(request.constraints))
        if reservation is not None:
            reservation.undo()
