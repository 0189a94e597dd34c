"""The demo: a workload of every kind, played through the real HTTP endpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from extender.api.core import Container, Pod, PodResourceClaim, PodSpec, ResourceRequirements
from extender.api.meta import ObjectMeta
from extender.sim.memory import MemoryApi
from extender.sim.scheduler import Placement, SmallScheduler


@dataclass(frozen=True, slots=True)
class Scene:
    """A pod of the demo and what it is there to show."""

    shows: str
    pod: Pod


def scenes() -> tuple[Scene, ...]:
    """The pods in the order in which they arrive."""
    return (
        Scene("a claim for one device", _pod("notebook", template="one-gpu")),
        Scene("eight devices of one kind", _pod("trainer", template="eight-h100", cpu="32")),
        Scene("a shared claim, first pod", _pod("server-0", claim="shared-l4")),
        Scene("a shared claim, second pod", _pod("server-1", claim="shared-l4")),
        Scene("a device plugin's resource", _pod("legacy", gpus=2)),
        Scene("no accelerator", _pod("web")),
        Scene("can't fit: no node has 16", _pod("giant", template="sixteen-gpus")),
    )


async def play(api: MemoryApi, scheduler: SmallScheduler) -> AsyncIterator[tuple[Scene, Placement]]:
    """Create, schedule and bind one pod after the other."""
    for scene in scenes():
        pod = api.create("Pod", scene.pod)
        placement = await scheduler.schedule(pod)
        if placement.node:
            text = await api.bind(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, placement.node)
            assert not text, text
        yield scene, placement


def _pod(
    name: str, *, template: str | None = None, claim: str | None = None, gpus: int = 0, cpu: str = "2"
) -> Pod:
    requests: dict[str, str | int | float] = {"cpu": cpu, "memory": "8Gi"}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
    claims = None
    if template is not None or claim is not None:
        claims = [PodResourceClaim("gpu", resource_claim_name=claim, resource_claim_template_name=template)]
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(
            scheduler_name="default-scheduler",
            containers=[Container(name="main", resources=ResourceRequirements(requests=requests))],
            resource_claims=claims,
        ),
    )
