from __future__ import annotations

import asyncio

import msgspec

from extender.admission.annotations import LOOK_SECONDS, MOST_TOLD, Annotations
from extender.api.core import Pod
from extender.verbs.desk import Scope
from tests.inventory.objects import fresh
from tests.verbs.live import asking

OURS = Scope(frozenset({"default-scheduler"}), frozenset({"kube-system"}), {})


def member(uid: str, need: str, *, scheduler: str = "default-scheduler", namespace: str = "ns") -> Pod:
    pod = asking(need=need)
    metadata = msgspec.structs.replace(pod.metadata, name=uid, uid=uid, namespace=namespace)
    spec = msgspec.structs.replace(pod.spec, scheduler_name=scheduler)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


class Scene:
    def __init__(self) -> None:
        self.ledger = fresh()
        self.told: list[tuple[str, str]] = []
        self.sleeps: list[float] = []
        self.annotations = Annotations(self.ledger, OURS, self._tell, sleep=self._sleep)

    async def look(self) -> list[str]:
        """Names of the pods that are told of in one look."""
        self.told.clear()
        await self.annotations.once()
        return [name for name, _ in self.told]

    def _tell(self, pod: Pod, text: str) -> None:
        self.told.append((pod.metadata.name, text))

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.sleep(0)
        if len(self.sleeps) == 3:
            raise asyncio.CancelledError


async def test_an_annotation_that_cant_be_read_is_told_once_with_its_text() -> None:
    scene = Scene()
    scene.ledger.upserted("Pod", member("a", "40 gigs"))
    assert await scene.look() == ["a"]
    assert "berth.scheduler/memory-need: '40 gigs' is ignored" in scene.told[0][1]
    assert await scene.look() == []


async def test_another_text_on_the_same_pod_is_told_again() -> None:
    scene = Scene()
    scene.ledger.upserted("Pod", member("a", "many"))
    await scene.look()
    scene.ledger.upserted("Pod", member("a", "-1"))
    assert await scene.look() == ["a"]


async def test_nobody_is_told_of_what_can_be_used_or_of_pods_that_are_not_ours() -> None:
    scene = Scene()
    scene.ledger.upserted("Pod", member("good", "40Gi"))
    scene.ledger.upserted("Pod", member("none", ""))
    scene.ledger.upserted("Pod", member("other", "many", scheduler="another"))
    scene.ledger.upserted("Pod", member("excluded", "many", namespace="kube-system"))
    assert await scene.look() == []


async def test_a_crowd_is_told_bit_by_bit() -> None:
    scene = Scene()
    names = [f"p{number}" for number in range(MOST_TOLD + 3)]
    for name in names:
        scene.ledger.upserted("Pod", member(name, "many"))
    first, second = await scene.look(), await scene.look()
    assert (len(first), len(second)) == (MOST_TOLD, 3)
    assert sorted(first + second) == sorted(names)
    assert await scene.look() == []


async def test_a_new_pod_of_the_name_is_told_of_and_the_old_one_forgotten() -> None:
    scene = Scene()
    old = member("a", "many")
    scene.ledger.upserted("Pod", old)
    await scene.look()
    scene.ledger.deleted("Pod", old)
    assert await scene.look() == []
    scene.ledger.upserted("Pod", old)
    assert await scene.look() == ["a"]


async def test_each_term_tells_anew() -> None:
    scene = Scene()
    scene.ledger.upserted("Pod", member("a", "many"))
    await asyncio.gather(asyncio.create_task(scene.annotations.run()), return_exceptions=True)
    assert [name for name, _ in scene.told] == ["a"]
    assert scene.sleeps == [LOOK_SECONDS] * 3
    scene.sleeps.clear()
    await asyncio.gather(asyncio.create_task(scene.annotations.run()), return_exceptions=True)
    assert [name for name, _ in scene.told] == ["a", "a"]
