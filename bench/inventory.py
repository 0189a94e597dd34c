"""Watch events applied, and snapshots taken, with a ledger of 5,000 nodes and 10,000 pods."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

from bench.fleet import claim, gpu_node, gpu_slice, ledger, node_name, pod
from bench.result import Result, at_most, figure
from extender.inventory.ledger import Ledger

NODES = 5000
EVENTS = 400


def run() -> list[Result]:
    """Mean time of an event by kind, each followed by a snapshot as a verb would take it."""
    book = ledger(NODES, pods=10_000)
    book.snapshot()
    events: dict[str, Callable[[int], object]] = {
        "ResourceClaim": lambda n: claim(f"held-{n}", taken=[(n, 7 - n % 4)]),
        "Pod": lambda n: pod(f"busy-{n}", node=node_name(n + 1)),
        "ResourceSlice": lambda n: gpu_slice(n, (n + 1) % 20),
        "Node": gpu_node,
    }
    results = []
    snapshots: list[float] = []
    for kind, make in events.items():
        objects = [make(number) for number in range(EVENTS)]
        spent = _apply(book, kind, objects, snapshots)
        results.append(at_most(f"watch event applied, {kind}", spent * 1e6, "us", 100.0))
    results.append(figure("snapshot after an event", median(snapshots) * 1e6, "us"))
    return results


def _apply(book: Ledger, kind: str, objects: list[object], snapshots: list[float]) -> float:
    spent = 0.0
    for obj in objects:
        began = perf_counter()
        book.upserted(kind, obj)
        between = perf_counter()
        book.snapshot()
        snapshots.append(perf_counter() - between)
        spent += between - began
    return spent / len(objects)
