"""Things that happen to a small cluster with live telemetry, in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import strategies as st

from extender.api.telemetry import DeviceState
from extender.inventory.inflight import Assumption
from extender.model.device import DeviceID
from tests.inventory.objects import DRIVER, claim, result, slice_of
from tests.inventory.objects import node as node_of
from tests.verbs.live import GIB, Live, gpu, published

NAMES = ("n0", "n1", "n2")
MOST = 4  # devices of a node


@dataclass(frozen=True)
class Step:
    """What happens to a node: `number` is a device, or how many; afterwards `wait` seconds pass."""

    what: str
    node: str
    number: int
    wait: float = 0.0
    age: float = 0.0
    read: dict[str, int] = field(default_factory=dict)


READINGS = st.fixed_dictionaries(
    {},
    optional={
        "utilisation_gpu": st.integers(0, 100),
        "memory_used": st.integers(0, 79).map(lambda gib: gib * GIB),
        "temperature": st.integers(20, 100),
        "throttle": st.sampled_from([0, 4, 8, 64]),
        "ecc_corrected_volatile": st.integers(0, 3),
        "remap_pending": st.integers(0, 1),
    },
)
KINDS = ("tell", "tell", "tell", "lose", "forget", "publish", "gone", "come", "allocate", "release", "place")
IN_FLIGHT = ("assume", "assume", "settle", "settle")
STEPS = st.lists(
    st.builds(
        Step,
        what=st.sampled_from((*KINDS, *IN_FLIGHT)),
        node=st.sampled_from(NAMES),
        number=st.integers(0, MOST - 1),
        wait=st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.3, 1.0, 15.0, 44.5, 50.0, 270.0, 3600.0]),
        age=st.sampled_from([0.0, 0.0, 3.0, 44.0]),
        read=READINGS,
    ),
    max_size=20,
)


class Course:
    """A cluster to which steps happen, and what is assumed of pods in flight there."""

    def __init__(self, **live: Any) -> None:
        self.live = Live(NAMES, **live)
        self.assumed: dict[str, Assumption] = {}

    def take(self, step: Step) -> None:
        """Let a step happen. What can't happen now does nothing."""
        getattr(self, f"_{step.what}")(step)
        self.live.now += step.wait
        self.live.lookout.health.tick(self.live.now)

    def _tell(self, step: Step) -> None:
        """The agent tells of `number` + 1 devices; those beyond are gone."""
        told = [gpu(step.node, at) for at in range(step.number)]
        last = gpu(step.node, step.number, processes=None, **step.read)
        self.live.tell(step.node, *told, last, age=step.age)

    def _lose(self, step: Step) -> None:
        lost = msgspec.structs.replace(gpu(step.node, step.number), state=DeviceState.LOST)
        self.live.tell(step.node, *(lost if n == step.number else gpu(step.node, n) for n in range(MOST)))

    def _forget(self, step: Step) -> None:
        self.live.lookout.store.forget(step.node)
        self.live.lookout.health.retain(self.live.lookout.store.uuids, self.live.now)

    def _publish(self, step: Step) -> None:
        devices = [published(step.node, number) for number in range(step.number + 1)]
        made = slice_of(f"s-{step.node}", step.node, devices, node=step.node)
        self.live.ledger.upserted("ResourceSlice", made)

    def _gone(self, step: Step) -> None:
        self.live.ledger.deleted("Node", node_of(step.node))

    def _come(self, step: Step) -> None:
        self.live.ledger.upserted("Node", node_of(step.node))

    def _allocate(self, step: Step) -> None:
        held = [result(step.node, f"gpu-{step.number}")]
        self.live.ledger.upserted("ResourceClaim", claim(f"held-{step.node}-{step.number}", held))

    def _release(self, step: Step) -> None:
        self.live.ledger.deleted("ResourceClaim", claim(f"held-{step.node}-{step.number}"))

    def _place(self, step: Step) -> None:
        devices = [DeviceID(DRIVER, step.node, f"gpu-{number}") for number in range(step.number + 1)]
        self.live.placements.placed("placed", step.node, devices, self.live.now)

    def _assume(self, step: Step) -> None:
        row_of = self.live.ledger.snapshot().topology.table.row_of
        row = row_of.get(DeviceID(DRIVER, step.node, f"gpu-{step.number}"))
        if row is not None:
            self.assumed[f"u{step.number}"] = Assumption(step.node, (row,), self.live.now)

    def _settle(self, step: Step) -> None:
        """One pod is assumed nowhere any more."""
        for uid in list(self.assumed)[step.number : step.number + 1] or list(self.assumed)[:1]:
            del self.assumed[uid]
