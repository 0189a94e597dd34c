"""The ledger that the benches measure: a made-up fleet, half taken."""

from __future__ import annotations

from extender.inventory.ledger import Ledger
from extender.sim.generated import (
    CLASS_EXPRESSION,
    DRIVER,
    claim,
    fleet,
    gpu_class,
    gpu_node,
    gpu_slice,
    node_name,
    pod,
)

__all__ = [
    "CLASS_EXPRESSION",
    "DRIVER",
    "claim",
    "gpu_class",
    "gpu_node",
    "gpu_slice",
    "ledger",
    "node_name",
    "pod",
]


def ledger(nodes: int, kinds: int = 20, devices: int = 8, pods: int = 0) -> Ledger:
    """A ledger of `nodes` nodes: half of each node's devices taken, one tenth of the nodes full."""
    book = Ledger(ignored_drivers=())
    for kind, objects in fleet(nodes, kinds, devices, plugin_every=0, pending=0).items():
        book.replaced(kind, objects, [])
    book.replaced("Pod", [pod(f"busy-{n}", node=node_name(n % nodes)) for n in range(pods)], [])
    return book
