"""Plain counts, for all nodes at once: ExactCount requests on dedicated devices, nothing that needs a search.

First fit over columns: a device is taken when it matches, is free and not tainted; request after request.
That is what the full search finds too, as long as the greedy choice leads to an end. Where it does not, and
another order of choices might, the node is left to the search.
Never: constraints, counters, shared devices, prioritized lists, mode All, admin access.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from extender.inventory.devices import Int32
from extender.inventory.topology import Topology

Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class PlainRequest:
    """`usable`: bool[n] in topology order, devices that match and are not tainted, whoever holds them."""

    usable: Bool
    count: int


@dataclass(frozen=True, eq=False)
class PlainFit:
    """First fit for all nodes: `fits` bool[slots]; `unsure` bool[slots]: greedy failed but a search may not.

    `free` and `total` int32[slots] count devices for the first request. Picks rows lazily.
    """

    topology: Topology
    fits: Bool
    unsure: Bool
    free: Int32
    total: Int32
    available: Bool
    requests: Sequence[PlainRequest]

    def rows(self, slot: int) -> list[int]:
        """Rows that first fit takes on the node, request by request."""
        start, end = int(self.topology.starts[slot]), int(self.topology.starts[slot + 1])
        available = self.available[start:end].copy()
        order = self.topology.order[start:end]
        rows: list[int] = []
        for request in self.requests:
            chosen = np.nonzero(available & request.usable[start:end])[0][: request.count]
            available[chosen] = False
            rows.extend(order[chosen].tolist())
        return rows

    def devices(self, slots: Int32) -> Int32:
        """The same rows for `slots` int32[m] at once, int32[k, m]; of no meaning where nothing fits."""
        topology, left = self.topology, self.available
        rows: list[Int32] = []
        for position, request in enumerate(self.requests):
            candidates = left & request.usable
            counts = topology.per_node(candidates) if position else self.free
            at = np.flatnonzero(candidates)
            begins = np.cumsum(counts, dtype=np.int32) - counts
            places = begins[slots] + np.arange(request.count, dtype=np.int32)[:, None]
            if len(at):
                rows.append(topology.order[at.take(places, mode="clip")])
            else:
                rows.append(np.full(places.shape, -1, np.int32))
            if position + 1 < len(self.requests):
                left = left & ~_first(topology, candidates, request.count)
        return rows[0] if len(rows) == 1 else np.concatenate(rows)


def fit_plain(topology: Topology, available: Bool, requests: Sequence[PlainRequest]) -> PlainFit:
    """Fit `requests` one after the other on every node.

    `available`: bool[n] in topology order, devices that no claim holds.
    """
    first = requests[0]
    total = topology.per_node(first.usable)
    free: Int32 | None = None
    fits: Bool | None = None
    left = available
    for position, request in enumerate(requests):
        candidates = left & request.usable
        counts = topology.per_node(candidates)
        enough = counts >= request.count
        fits = enough if fits is None else fits & enough
        if free is None:
            free = counts
        if position + 1 < len(requests):
            left = left & ~_first(topology, candidates, request.count)
    assert free is not None
    assert fits is not None
    distinct = len({id(request.usable) for request in requests}) > 1
    unsure = ~fits if distinct else np.zeros(len(fits), np.bool_)
    return PlainFit(topology, fits, unsure, free, total, available, requests)


def _first(topology: Topology, candidates: Bool, count: int) -> Bool:
    """The first `count` candidates of each node, bool[n]."""
    running = np.zeros(len(candidates) + 1, np.int32)
    np.cumsum(candidates, out=running[1:], dtype=np.int32)
    starts = topology.starts
    before = np.repeat(running[starts[:-1]], np.diff(starts))
    chosen: Bool = candidates & (running[1:] - before <= count)
    return chosen
