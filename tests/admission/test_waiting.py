"""Who is nudged, over a small cluster with live telemetry."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from extender.admission.nudging import FULL_LOOKS, FULL_SECONDS, Nudging, Waiting
from extender.api.core import Pod
from extender.api.meta import Condition
from extender.api.telemetry import DeviceState
from tests.kube.recording import until
from tests.verbs.live import Live, asking, gpu

LOST = "0/2 nodes are available: {} DeviceLost: the device that the pod would get has fallen off the bus."


@dataclass
class Queue:
    added: list[str] = field(default_factory=list)
    cleared: int = 0

    def add(self, namespace: str, name: str, uid: str) -> None:
        assert (namespace, uid) != ("", "")
        self.added.append(name)

    def clear(self) -> None:
        self.cleared += 1


class Scene:
    def __init__(self) -> None:
        self.live = Live()
        self.live.tell_all()
        self.enforced = True
        self.queue = Queue()
        self.nudging = self.make()

    def make(self) -> Nudging:
        """The loop of a new leader."""
        self.waiting = Waiting(self.live.ledger, self.live.desk, lambda: self.live.now, lambda: self.enforced)
        return Nudging(self.waiting, self.queue, interval_s=1.0)

    def lose(self, *nodes: str) -> None:
        for node in nodes:
            gone = msgspec.structs.replace(gpu(node, 0), state=DeviceState.LOST)
            self.live.tell(node, gone, gpu(node, 1))

    def heal(self, *nodes: str) -> None:
        """The quiet time passes; the other nodes stay as sick as they are."""
        for _ in range(2):
            for node in self.live.names:
                if node in nodes:
                    self.live.tell(node, gpu(node, 0), gpu(node, 1))
                else:
                    self.lose(node)
            self.live.now += self.live.lookout.health.table.quiet_s
        for node in nodes:
            self.live.tell(node, gpu(node, 0), gpu(node, 1))
        self.lose(*(node for node in self.live.names if node not in nodes))

    def waits(self, count: int = 2) -> None:
        """kube-scheduler has said so of the pod."""
        self.live.ledger.upserted("Pod", _refused(asking(), LOST.format(count)))

    async def look(self) -> list[str]:
        self.queue.added.clear()
        await self.nudging.once()
        return self.queue.added


def _refused(pod: Pod, message: str) -> Pod:
    replace = msgspec.structs.replace
    said = Condition("PodScheduled", "False", "Unschedulable", message)
    ours = replace(pod.spec, scheduler_name="default-scheduler")
    return replace(pod, spec=ours, status=replace(pod.status, conditions=[said]))


async def test_a_pod_is_nudged_once_when_a_node_that_was_refused_is_open_again() -> None:
    scene = Scene()
    scene.lose("n0", "n1")
    scene.waits()
    assert await scene.look() == []
    scene.heal("n0")
    assert await scene.look() == ["q"]
    assert await scene.look() == []


async def test_a_new_leader_nudges_for_what_cleared_under_the_old_one() -> None:
    scene = Scene()
    scene.lose("n0", "n1")
    scene.waits()
    scene.heal("n0")
    scene.nudging = scene.make()
    assert await scene.look() == ["q"]


async def test_a_new_leader_nudges_nobody_whose_reasons_still_hold() -> None:
    scene = Scene()
    scene.lose("n0", "n1")
    scene.waits()
    assert await scene.look() == []


async def test_when_vetoes_are_switched_off_whoever_waits_is_nudged() -> None:
    scene = Scene()
    scene.lose("n0", "n1")
    scene.waits()
    await scene.look()
    scene.enforced = False
    assert await scene.look() == ["q"]


async def test_a_pod_that_others_keep_waiting_is_never_asked_about() -> None:
    scene = Scene()
    scene.live.ledger.upserted("Pod", _refused(asking(), "0/2 nodes are available: 2 Insufficient cpu."))
    assert await scene.look() == []


async def test_a_node_that_was_refused_after_the_first_look_counts_when_it_is_open_again() -> None:
    scene = Scene()
    scene.lose("n0")
    scene.waits(1)
    assert await scene.look() == []
    scene.live.now += FULL_SECONDS
    scene.lose("n0", "n1")
    assert await scene.look() == []
    scene.heal("n1")
    assert await scene.look() == ["q"]


async def test_a_changed_condition_has_all_nodes_asked_at_once() -> None:
    scene = Scene()
    scene.lose("n0")
    scene.waits(1)
    assert await scene.look() == []
    scene.lose("n0", "n1")
    scene.waits(2)
    assert await scene.look() == []
    scene.heal("n1")
    assert await scene.look() == ["q"]


async def test_a_pod_of_another_scheduler_is_never_asked_about() -> None:
    scene = Scene()
    pod = _refused(asking(), LOST.format(2))
    spec = msgspec.structs.replace(pod.spec, scheduler_name="another")
    scene.live.ledger.upserted("Pod", msgspec.structs.replace(pod, spec=spec))
    assert await scene.look() == []
    assert len(scene.waiting) == 0


async def test_a_pod_that_is_gone_is_forgotten() -> None:
    scene = Scene()
    scene.lose("n0", "n1")
    scene.waits()
    await scene.look()
    assert len(scene.waiting) == 1
    scene.live.ledger.deleted("Pod", _refused(asking(), LOST.format(2)))
    await scene.look()
    assert len(scene.waiting) == 0


async def test_when_the_lead_is_lost_nobody_waits_for_a_nudge_of_ours_any_more() -> None:
    scene = Scene()
    scene.lose("n0", "n1")
    scene.waits(3)
    term = asyncio.create_task(scene.nudging.run())
    await until(lambda: bool(scene.queue.added))
    term.cancel()
    await asyncio.gather(term, return_exceptions=True)
    assert (scene.queue.cleared, len(scene.waiting)) == (1, 0)


async def test_a_crowd_is_looked_at_bit_by_bit() -> None:
    scene = Scene()
    scene.lose("n0", "n1")
    crowd = [_refused(asking(), LOST.format(2)) for _ in range(2 * FULL_LOOKS)]
    for number, pod in enumerate(crowd):
        named = msgspec.structs.replace(pod.metadata, name=f"q{number}", uid=f"uid-{number}")
        scene.live.ledger.upserted("Pod", msgspec.structs.replace(pod, metadata=named))
    await scene.look()
    await scene.look()
    scene.heal("n0")
    assert len(await scene.look()) == 2 * FULL_LOOKS
