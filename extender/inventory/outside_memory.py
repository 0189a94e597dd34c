"""Memory of a device that processes of no known pod hold. Pure.

Never: a taint or a state of health: it concerns the pods only that it leaves too little.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from extender.api.telemetry import Absence, Device, Process


@dataclass(frozen=True, slots=True)
class HeldOutside:
    """A device on which somebody else holds what a pod needs, in bytes."""

    need: int
    attainable: int  # free, and held by pods that we know
    outside: int

    @property
    def text(self) -> str:
        """In words, for the reason's text."""
        gib = 1 << 30
        return (
            f"{self.attainable / gib:.1f} GiB attainable, {self.need / gib:.1f} GiB needed, "
            f"{self.outside / gib:.1f} GiB held by processes of no known pod"
        )


def memory_held_outside(
    need: int, device: Device, known_pods: Collection[str], *, fresh: bool, allocated: bool
) -> HeldOutside | None:
    """Whether memory held outside the known pods leaves less than `need` bytes; None: no reason to refuse.

    What known pods hold is the allocation's matter (they may be about to end), so it counts as attainable.
    Without a full process list nobody can say whose memory it is: then the use of an unallocated device is
    outside, and that of an allocated one is not. A reading that is not fresh never refuses a pod.
    """
    r = device.readings
    total, used = r.memory_total, r.memory_used
    if not fresh or isinstance(total, Absence) or isinstance(used, Absence):
        return None
    reserved = 0 if isinstance(r.memory_reserved, Absence) else r.memory_reserved
    free = max(0, total - used - reserved)
    if free >= need:
        return None
    ours = _held_by(device.processes, known_pods)
    if ours is None:
        if allocated:
            return None
        ours = 0
    attainable = free + min(ours, used)
    if attainable >= need:
        return None
    return HeldOutside(need, attainable, max(0, used - ours))


def _held_by(processes: tuple[Process, ...] | Absence, pods: Collection[str]) -> int | None:
    if isinstance(processes, Absence):
        return None
    held = [p.memory for p in processes if p.pod_uid in pods]
    return None if any(memory is None for memory in held) else sum(m for m in held if m is not None)
