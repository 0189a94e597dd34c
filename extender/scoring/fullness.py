"""Judges `pack` and `spread`: the fullest node that fits, or the emptiest.

Pods with devices: share of the matching devices in use once the pod is there. Device-plugin pods: the same of
the extended resource. Others: mean of cpu and memory, which NodeResourcesFit would otherwise score.
"""

from __future__ import annotations

import numpy as np

from extender.inventory.requests import is_extended_resource
from extender.inventory.snapshot import Snapshot
from extender.scoring.candidates import Candidates, Evidence, Float64

_NATIVE = ("cpu", "memory")
_UNKNOWN = 1.01


class Pack:
    """Fuller is better: whole nodes stay free for those who need them."""

    name = "pack"

    def judge(self, candidates: Candidates, snapshot: Snapshot, now: float) -> tuple[Float64, Evidence]:  # noqa: ARG002 - a judge's seam
        """Score by the share in use after the placement."""
        full = fullness(candidates, snapshot)
        scores = np.where(full <= 1, full, 0)
        return scores, lambda i: _said(full[i], f"{full[i]:.0%} of {_what(candidates)} in use with this pod")


class Spread:
    """Emptier is better."""

    name = "spread"

    def judge(self, candidates: Candidates, snapshot: Snapshot, now: float) -> tuple[Float64, Evidence]:  # noqa: ARG002 - a judge's seam
        """Score by the share left after the placement."""
        full = fullness(candidates, snapshot)
        left = np.clip(1 - full, 0, 1)
        return left, lambda i: _said(full[i], f"{left[i]:.0%} of {_what(candidates)} left with this pod")


def fullness(candidates: Candidates, snapshot: Snapshot) -> Float64:
    """Share in use after the placement, float64[n]; above 1 where the pod does not fit as far as we see.

    Such a node, and one that the ledger does not know (1.01), is the last choice of either judge.
    """
    known = candidates.slots >= 0
    slots = np.where(known, candidates.slots, 0)
    if candidates.asks_for_devices:
        total = candidates.total.astype(np.float64)
        used = total - candidates.free + candidates.wanted
        for name, amount in candidates.amounts.items():
            if is_extended_resource(name) and name in snapshot.nodes.allocatable:
                offered = snapshot.nodes.allocatable[name][slots] / 1000
                in_use = snapshot.nodes.used.get(name)
                busy = (in_use[slots] if in_use is not None else 0) / 1000 + amount / 1000
                total, used = total + offered, used + np.where(offered > 0, busy, 0)
        # Nothing that matches is no room, unless nobody knows of anything that matches anywhere.
        nothing = _UNKNOWN if (total > 0).any() else 0.0
        share: Float64 = np.divide(used, total, out=np.full(len(slots), nothing), where=total > 0)
    else:
        share = np.zeros(len(slots))
        for name in _NATIVE:
            capacity = snapshot.nodes.allocatable[name][slots].astype(np.float64)
            held = snapshot.nodes.used[name][slots] + candidates.amounts.get(name, 0)
            share += np.divide(held, capacity, out=np.zeros(len(slots)), where=capacity > 0) / len(_NATIVE)
    result: Float64 = np.where(known, share, _UNKNOWN)
    return result


def _said(full: float, text: str) -> str:
    return text if full <= 1 else "no room as far as we see"


def _what(candidates: Candidates) -> str:
    return "the matching devices" if candidates.asks_for_devices else "cpu and memory"
