"""A sink that writes down what it is told, and a pace whose sleeps take no time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from extender.kube.pace import Pace
from extender.verbs.ports import Undecodable

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class RecordingSink:
    """`known` is what a ledger would hold; `log` the calls in order."""

    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: dict[str, Undecodable] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    on_call: Callable[[], None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def replaced(self, kind: str, objects: Iterable[object], undecodable: Iterable[Undecodable]) -> None:
        named: dict[str, Any] = {_name(obj): obj for obj in objects}
        self.known[kind] = named
        self.broken = {what.name: what for what in undecodable}
        self._note("replaced", ",".join(sorted(named)))

    def upserted(self, kind: str, obj: object) -> None:
        self.known.setdefault(kind, {})[_name(obj)] = obj
        self._note("upserted", _name(obj))

    def deleted(self, kind: str, obj: object) -> None:
        self.known.setdefault(kind, {}).pop(_name(obj), None)
        self._note("deleted", _name(obj))

    def undecodable(self, kind: str, what: Undecodable) -> None:
        self.broken[what.name] = what
        self.known.setdefault(kind, {}).pop(what.name, None)
        self._note("undecodable", what.name)

    def names(self, kind: str) -> list[str]:
        return sorted(self.known.get(kind, {}))

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for a condition that calls of the sink bring about."""
        async with asyncio.timeout(seconds):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    def _note(self, what: str, name: str) -> None:
        self.log.append((what, name))
        self.changed.set()
        if self.on_call is not None:
            self.on_call()


def _name(obj: Any) -> str:
    name: str = obj.metadata.name
    return name


@dataclass
class FakeTime:
    """A clock that only sleeping moves. `sleeps` are the waits that were asked for."""

    now: float = 1000.0
    sleeps: list[float] = field(default_factory=list)
    dice: float = 0.5

    def pace(self) -> Pace:
        return Pace(clock=lambda: self.now, wall=self.wall, sleep=self.sleep, chance=lambda: self.dice)

    def wall(self) -> datetime:
        return EPOCH + timedelta(seconds=self.now)

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for a condition that nothing announces; the poll decides nothing but when we look."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.002)
