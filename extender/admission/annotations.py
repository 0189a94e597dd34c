"""Whoever owns a pod is told, by an event, that an annotation of ours on it can't be used.

The leader looks for them among all pods it knows. The verbs change nothing, so they can't tell.
Never: a refusal for it; the annotation is ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from extender.api.core import Pod
from extender.inventory.ledger import Ledger
from extender.verbs.desk import Scope
from extender.verbs.memory_veto import Malformed, memory_need

LOOK_SECONDS: Final = 10.0
MOST_TOLD: Final = 20
"""In one look: the events of a large Deployment leave room for those of devices that fell sick."""

_PODS_A_BREATH: Final = 1000


class Annotations:
    """Tells once a pod and text, in each term. `run` while this process leads, then cancel it.

    Args:
        ledger: has the pods.
        scope: whose pods are ours.
        tell: is given a pod and a sentence for its owner; must not block.
        sleep: between two looks, and with 0 to let others have the loop.
    """

    def __init__(
        self,
        ledger: Ledger,
        scope: Scope,
        tell: Callable[[Pod, str], None],
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._ledger = ledger
        self._scope = scope
        self._tell = tell
        self._sleep = sleep
        self._told: dict[str, str] = {}

    async def run(self) -> None:
        """Look again and again, from nothing told at first."""
        self._told.clear()
        while True:
            await self.once()
            await self._sleep(LOOK_SECONDS)

    async def once(self) -> None:
        """One look at every pod; at most `MOST_TOLD` are told, the others at the next."""
        pods = self._ledger.snapshot().pods
        for gone in [uid for uid in self._told if uid not in pods]:
            del self._told[gone]
        room = MOST_TOLD
        for number, record in enumerate(list(pods.values()), 1):
            if not number % _PODS_A_BREATH:
                await self._sleep(0)
            need = memory_need(record.pod) if self._scope.covers(record.pod) else None
            if isinstance(need, Malformed) and self._told.get(record.uid) != need.text:
                self._told[record.uid] = need.text
                self._tell(record.pod, need.text)
                room -= 1
                if not room:
                    return
