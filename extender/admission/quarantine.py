"""The leader's quarantine: one taint rule a sick device, gone again when the device is well.

    well --sick, room under the share--> tainted --well, as this process saw------> well
                                            |------not sick, and nobody saw why--> well after a quiet time

Health only: neither load nor memory is a reason. A node that is sick as a whole (no driver) gets no rule:
none of its devices can be had instead, and the veto says why.
Owns: who is tainted, and the share. Never: a rule of somebody else, or how a rule is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from math import floor

import structlog

from extender.admission.ward import Ward
from extender.inventory.health import BY_GRAVITY
from extender.model.device import DeviceID
from extender.model.errors import KubeError
from extender.model.reason import Reason
from extender.verbs.ports import QuarantineRules

RELIST_SECONDS = 30.0
"""How often our rules are listed anew: somebody may have deleted one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done; `held_back` devices are sick and have no room under the share."""

    taint: tuple[tuple[DeviceID, Reason], ...] = ()
    clear: tuple[DeviceID, ...] = ()
    held_back: int = 0


@dataclass(slots=True)
class Memory:
    """What this process has seen of quarantined devices."""

    sick: set[DeviceID] = field(default_factory=set)
    well_since: dict[DeviceID, float] = field(default_factory=dict)


def plan(ward: Ward, ours: Collection[DeviceID], memory: Memory, share: float, quiet_s: float) -> Plan:
    """What to taint and to clear; notes in `memory` what was seen.

    Args:
        ward: the fleet's health of now.
        ours: devices with a rule of ours.
        memory: of this process; emptied by nobody, so that a rule outlives a restart.
        share: of the published devices that may carry a rule at once.
        quiet_s: seconds for which a device that this process never saw sick keeps its rule.
    """
    clear = []
    for device in ours:
        if device in ward.sick or device in ward.doubtful:
            memory.sick.add(device)
            memory.well_since.pop(device, None)
            continue
        since = memory.well_since.setdefault(device, ward.at)
        recovered = device in memory.sick and ward.heard(device)
        if recovered or ward.at - since >= quiet_s:
            clear.append(device)
    for device in memory.sick.difference(ours):
        memory.sick.discard(device)
    for device in set(memory.well_since).difference(ours):
        del memory.well_since[device]
    waiting = sorted(
        ((device, reason) for device, reason in ward.sick.items() if device not in ours),
        key=lambda each: (BY_GRAVITY.index(each[1]), each[0]),
    )
    room = max(0, floor(ward.published * share + 1e-9) - len(ours))
    return Plan(tuple(waiting[:room]), tuple(sorted(clear)), max(0, len(waiting) - room))


class Quarantine:
    """Keeps the rules in step with the fleet's health. `run` while this process leads, then cancel it."""

    def __init__(
        self,
        rules: QuarantineRules,
        look: Callable[[], Ward],
        *,
        enforce: Callable[[], bool],
        share: float,
        quiet_s: float,
        interval_s: float,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`enforce`: false in shadow mode and when the switch is off: then no device is kept from anybody."""
        self.tainted = 0
        self.held_back = 0
        self.failed = 0
        self._rules = rules
        self._look = look
        self._enforce = enforce
        self._share = share
        self._quiet_s = quiet_s
        self._interval_s = interval_s
        self._sleep = sleep
        self._memory = Memory()
        self._ours: dict[DeviceID, str] = {}
        self._listed_at = -RELIST_SECONDS
        self._log = structlog.get_logger("extender.admission")

    async def run(self) -> None:
        """Look again and again, with everything listed anew in this term."""
        self._listed_at = -RELIST_SECONDS
        try:
            while True:
                await self.once()
                await self._sleep(self._interval_s)
        finally:
            self.tainted = self.held_back = 0

    async def once(self) -> None:
        """One look; what fails is tried again at the next."""
        ward = self._look()
        try:
            if not 0 <= ward.at - self._listed_at < RELIST_SECONDS:
                self._ours = dict(await self._rules.ours())
                self._listed_at = ward.at
            await self._apply(ward)
        except KubeError as error:
            self.failed += 1
            self._listed_at = -RELIST_SECONDS  # what became of the write is not known
            self._log.warning("quarantine could not be written", error=str(error))
        self.tainted = len(self._ours)

    async def _apply(self, ward: Ward) -> None:
        if self._enforce():
            todo = plan(ward, self._ours, self._memory, self._share, self._quiet_s)
        else:
            todo = Plan(clear=tuple(sorted(self._ours)))
        self.held_back = todo.held_back
        for device in todo.clear:
            if await self._rules.clear(self._ours[device]):
                del self._ours[device]
                self._log.info("quarantine ended", device=str(device))
        for device, reason in todo.taint:
            name = await self._rules.taint(device, str(reason))
            if name is not None:
                self._ours[device] = name
                self._log.warning("device quarantined", device=str(device), reason=str(reason))
