"""The structured allocator: which devices kube-scheduler would give a pod's claims on a node.

Owns pools, requests, candidates, constraints, counters, capacity, taints, node selection, configuration and
the search, equal to k8s.io/dynamic-resource-allocation v0.37 with its known bugs fixed (docs/allocator.md).
Never: the API, clocks, or a device that the scheduler would not take.
"""

from __future__ import annotations

from .allocate import allocate, never_interrupted
from .evaluator import SelectorEvaluator, SelectorFault
from .features import Features
from .outcome import Allocation, Failure, GaveUp, NoFit, Outcome
from .pools import Pools, SliceIndex, gather_pools
from .state import AllocatedState, SharedDeviceID

__all__ = [
    "AllocatedState",
    "Allocation",
    "Failure",
    "Features",
    "GaveUp",
    "NoFit",
    "Outcome",
    "Pools",
    "SelectorEvaluator",
    "SelectorFault",
    "SharedDeviceID",
    "SliceIndex",
    "allocate",
    "gather_pools",
    "never_interrupted",
]
