"""What live telemetry adds to filter + prioritize: the same calls with and without, by turns."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from time import thread_time

import msgspec

from bench.fleet import claim, ledger, pod
from bench.result import Result, at_most, figure
from bench.service import desk_on, lookout
from bench.verbs import NODES, bodies
from extender.api.extender import ExtenderArgs, ExtenderFilterResult
from extender.api.telemetry import SCHEMA, Device, Driver, DriverState, Readings, Sample
from extender.inventory.ledger import Ledger
from extender.inventory.placements import Placements
from extender.inventory.telemetry import Refusal
from extender.server.verbs import VerbRoutes
from extender.sim.generated import node_name

DEVICES = 8
SICK_EVERY = 100  # nodes whose first free device is unhealthy
SILENT_EVERY = 50  # nodes that nobody has heard for a minute: their readings are stale
EVERY = 0.01  # seconds between pods
HEARTBEAT = 15.0
IN_FLIGHT = 5  # pods whose allocation has not been seen yet: 50 ms of them
CALLS = 250
WARMING = 10  # calls that are not counted


def run() -> list[Result]:
    """5,000 nodes x 8 devices, 100 pods a second, an allocation seen 50 ms after its pod was asked about.

    Every node's agent is heard each 15 s, and as often again because something changed; one node of 50 is
    silent. Pods end where prioritize sends them and count as placed. prioritize is asked about the nodes that
    filter let through. Taking the samples is no part of a call and measured apart.
    """
    fleet = _Fleet()
    without = desk_on(fleet.book, clock=lambda: fleet.now)
    full = desk_on(fleet.book, fleet.live, placements=fleet.placements, clock=lambda: fleet.now)
    asked = bodies(CALLS)
    times: dict[VerbRoutes, list[float]] = {without: [], full: []}
    for number, body in enumerate(asked):
        if number == WARMING:
            gc.collect()
            gc.freeze()
        fleet.goes_on(number)
        for routes in (without, full) if number % 2 else (full, without):
            times[routes].append(_both(routes, body))
    gc.unfreeze()
    bare, more = (times[routes][WARMING:] for routes in (without, full))
    # Two pods, one of each order: who comes second finds the names in the processor's cache.
    share = median(f / b for f, b in zip(_in_twos(more), _in_twos(bare), strict=True)) - 1.0
    mean = sum(more) / sum(bare) - 1.0
    return [
        at_most(
            "telemetry in filter + prioritize, 5,000 nodes x 8: extra time at the median", share, "", 0.25
        ),
        at_most("the same in the mean, making the devices' marks included", mean, "", 0.25),
        figure("filter + prioritize without telemetry", median(bare) * 1e3, "ms"),
        figure("filter + prioritize with telemetry", median(more) * 1e3, "ms"),
        figure("a sample of 8 devices into store and health", median(fleet.heard) * 1e6, "us"),
    ]


def _in_twos(times: list[float]) -> list[float]:
    return [first + second for first, second in zip(times[::2], times[1::2], strict=True)]


def _both(routes: VerbRoutes, body: bytes) -> float:
    """Seconds of CPU time: what else runs on the machine is not ours, nor is the bench's own garbage."""
    gc.collect(0)
    began = thread_time()
    filtered = routes.filter(body)
    spent = thread_time() - began
    args = msgspec.json.decode(body, type=ExtenderArgs)
    names = msgspec.json.decode(filtered, type=ExtenderFilterResult).node_names
    passed = msgspec.json.encode(msgspec.structs.replace(args, node_names=names))
    gc.collect(0)
    began = thread_time()
    routes.prioritize(passed)
    return spent + thread_time() - began


@dataclass
class _Fleet:
    """The ledger and the telemetry of a fleet, and what goes on there between two pods."""

    now: float = 1000.0
    heard: list[float] = field(default_factory=list)  # seconds a sample

    def __post_init__(self) -> None:
        self.book: Ledger = ledger(NODES)
        self.live = lookout()
        self.placements = Placements()
        self._sequence = count(1)
        self._number = {node_name(number): number for number in range(NODES)}
        self._dice = random.Random(11)
        self._heartbeats = self._turns()
        self._owed = 0.0
        for node in range(NODES):
            age = 60.0 if _silent(node) else HEARTBEAT * (1 - node / NODES)
            self._hear(node, self.now - age)
        self.heard.clear()

    def goes_on(self, number: int) -> None:
        """Samples arrive, the claim of pod `number` shows up, that of an earlier pod is allocated."""
        self.now += EVERY
        self._owed += NODES * EVERY / HEARTBEAT
        while self._owed >= 1.0:
            self._owed -= 1.0
            self._hear(next(self._heartbeats), self.now)
            changed = self._dice.randrange(NODES)
            if not _silent(changed):
                self._hear(changed, self.now)
        self.book.upserted("ResourceClaim", claim(f"wanted-{number}", 1 + number % 4))
        if number >= IN_FLIGHT:
            self._allocate(number - IN_FLIGHT)

    def _allocate(self, number: int) -> None:
        name, uid = f"wanted-{number}", f"pod-pod-{number}"
        held = dict(self.book.in_flight.assumptions(self.now))[uid]
        topology = self.book.snapshot().topology
        devices = [topology.table.ids[row] for row in held.rows]
        node = self._number[held.node]
        taken = [(node, int(device.device.removeprefix("gpu-"))) for device in devices]
        self.book.upserted("ResourceClaim", claim(name, 1 + number % 4, taken))
        self.book.upserted("Pod", pod(f"pod-{number}", name, node=held.node))
        self.book.in_flight.ended(uid)
        self.placements.placed(uid, held.node, devices, held.at)

    def _hear(self, node: int, at: float) -> None:
        sample = _sample(node, next(self._sequence), self._dice)
        began = thread_time()
        applied = self.live.store.apply(sample, at)
        if isinstance(applied, Refusal):
            raise TypeError(f"{sample.node}: {applied}")
        self.live.health.observe(applied, at)
        self.heard.append(thread_time() - began)

    @staticmethod
    def _turns() -> Iterator[int]:
        while True:
            yield from (node for node in range(NODES) if not _silent(node))


def _silent(node: int) -> bool:
    return node % SILENT_EVERY == 1


def _sample(node: int, sequence: int, dice: random.Random) -> Sample:
    gib = 1 << 30
    devices = tuple(
        Device(
            uuid=f"GPU-{node:08x}-{number:04x}",
            index=number,
            minor=number,
            readings=Readings(
                memory_total=80 * gib,
                memory_used=dice.randrange(79 * gib),
                memory_reserved=gib // 2,
                utilisation_gpu=dice.randrange(101),
                temperature=dice.randrange(30, 90),
                throttle=8 if dice.random() < 0.02 else 0,
                ecc_corrected_volatile=node % 3,
                remap_pending=int(number == DEVICES // 2 and node % SICK_EVERY == 5),
            ),
        )
        for number in range(DEVICES)
    )
    return Sample(
        SCHEMA, node_name(node), "boot", "agent", sequence, 10, 5, 0, Driver(DriverState.OK), devices
    )
