"""The door of the room: claims in, allocation or reason out.

Owns the order of an attempt: pools, checks of all claims, search, results. Never mutates its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from extender.api.core import Node
from extender.api.quantity import QuantityError
from extender.api.resource import DeviceClass, ResourceClaim

from .evaluator import SelectorEvaluator
from .features import Features
from .outcome import Abort, Allocation, Failure, GaveUp, NoFit, Outcome
from .pools import Pools
from .requests import Planner
from .results import allocation_result
from .search import Interrupted, OutOfSteps, Search
from .state import AllocatedState

_INVALID_POOLS = "invalid resource pools were encountered"


def never_interrupted() -> None:
    """Let an attempt run to its end."""


def allocate(  # noqa: PLR0911, PLR0917 - one return for each end; the seam, in design.md's order
    node: Node,
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    pools: Pools,
    in_use: AllocatedState,
    features: Features,
    steps: int,
    interrupted: Interrupted = never_interrupted,
    *,
    evaluator: SelectorEvaluator,
) -> Outcome:
    """Allocate the claims on a node as kube-scheduler 1.37 does, known upstream bugs fixed.

    `claims` need devices and have none yet; `classes` by name; `pools` from `gather_pools` for the same node
    and features (else ValueError); `in_use` what claims hold already; at most `steps` visits of the search,
    then GaveUp. Claims are taken as the API server stores them: defaults filled in.
    """
    if pools.features != features or pools.node.metadata.name != node.metadata.name:
        raise ValueError(f"pools were gathered for node {pools.node.metadata.name!r} or other features")
    if pools.failure is not None:
        return pools.failure
    search = None
    try:
        planner = Planner(classes, pools, evaluator)
        plans = [planner.plan(index, claim) for index, claim in enumerate(claims)]
        search = Search(pools, plans, in_use, steps, interrupted)
        if not search.run():
            if any(pool.invalid_reason for pool in pools.pools):
                return Failure("node", _INVALID_POOLS, search.steps)
            return NoFit(search.steps)
        results = tuple(
            allocation_result(plan, picked, selected, node.metadata.name, features)
            for plan, picked, selected in zip(plans, search.picked, search.selected, strict=True)
        )
    except Abort as abort:
        return Failure(abort.scope, abort.text, search.steps if search else 0)
    except QuantityError as error:  # upstream computes on until its memory ends
        return Failure("fatal", str(error), search.steps if search else 0)
    except OutOfSteps:
        return GaveUp(steps)
    return Allocation(results, search.steps)
