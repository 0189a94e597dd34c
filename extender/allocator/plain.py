"""Plain counts, for all nodes at once: ExactCount requests on dedicated devices, nothing that needs a search.

First fit over columns: a device is taken when it matches, is free and not tainted; request after request.
That is what the full search finds too, as long as the greedy choice leads to an end. Where it does not, and
another order of choices might, the node is left to the search.
Never: constraints, counters, shared devices, prioritized lists, mode All, admin access.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from extender.inventory.devices import Int32
from extender.inventory.topology import Topology

Bool = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]


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

    def devices(self, slots: Int32, places: CandidatePlaces) -> Int32:
        """The same rows for `slots` int32[m] at once, int32[k, m]; of no meaning where nothing fits."""
        rows: list[Int32] = []
        for request, (at, begins) in zip(self.requests, places.of(self), strict=True):
            wanted = begins[slots] + np.arange(request.count)[:, None]
            if len(at):
                rows.append(self.topology.order[at.take(wanted, mode="clip")])
            else:
                rows.append(np.full(wanted.shape, -1, np.int32))
        return rows[0] if len(rows) == 1 else np.concatenate(rows)


class CandidatePlaces:
    """Where the devices stand that each request of a fit may take; of the fit asked about last.

    filter and prioritize ask about the same fit. A fit does not hold them itself: decision records keep fits
    for long, and these are large.
    """

    def __init__(self) -> None:
        self._last: tuple[PlainFit, Sequence[tuple[Places, Places]]] | None = None

    def of(self, fit: PlainFit) -> Sequence[tuple[Places, Places]]:
        """By request: places in topology order, intp[n], and which of them is a node's first, intp[slots]."""
        if self._last is None or self._last[0] is not fit:
            self._last = (fit, list(_places(fit)))
        return self._last[1]


def _places(fit: PlainFit) -> Iterator[tuple[Places, Places]]:
    left = fit.available
    for position, request in enumerate(fit.requests):
        candidates = left & request.usable
        counts = fit.topology.per_node(candidates) if position else fit.free
        begins: Places = np.cumsum(counts, dtype=np.intp) - counts
        yield np.flatnonzero(candidates), begins
        if position + 1 < len(fit.requests):
            left = left & ~_first(fit.topology, candidates, request.count)


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
