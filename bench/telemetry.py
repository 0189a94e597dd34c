"""What live telemetry adds to filter + prioritize: the same calls with and without, by turns."""

from __future__ import annotations

import gc
from statistics import median
from time import perf_counter, thread_time

from bench.fleet import claim, ledger
from bench.result import Result, at_most, figure
from bench.service import desk_on, lookout
from bench.verbs import CALLS, NODES, bodies
from extender.api.telemetry import SCHEMA, Device, Driver, DriverState, Readings, Sample
from extender.inventory.outlook import Lookout
from extender.inventory.telemetry import Refusal
from extender.server.verbs import VerbRoutes
from extender.sim.generated import node_name

DEVICES = 8
SICK_EVERY = 100
IN_FLIGHT = 5  # pods whose allocation has not been seen yet: 50 ms of them
EVERY = 15.0


def run() -> list[Result]:
    """5,000 nodes x 8 devices, all of them heard, one of a hundred nodes with an unhealthy first device.

    Time goes on by the heartbeat's share of one call in 10 ms, so that the marks of the devices are made anew
    as often as in a cluster that places 100 pods a second; an allocation is seen 50 ms after its pod was
    asked about.
    """
    book = ledger(NODES)
    for number in range(CALLS):
        book.upserted("ResourceClaim", claim(f"wanted-{number}", 1 + number % 4))
    now = [1000.0]
    live = lookout()
    heard = _hear(live, now[0])
    without = desk_on(book, clock=lambda: now[0])
    with_telemetry = desk_on(book, live, clock=lambda: now[0])
    asked = bodies()
    for body in asked[:10]:
        _both(without, body)
        _both(with_telemetry, body)
    gc.collect()
    gc.freeze()
    bare: list[float] = []
    full: list[float] = []
    for number, body in enumerate(asked[10:]):
        now[0] += 0.01
        if number >= IN_FLIGHT:
            book.in_flight.ended(f"pod-pod-{number + 10 - IN_FLIGHT}")
        turns = [(without, bare), (with_telemetry, full)]
        for routes, times in turns if number % 2 else reversed(turns):
            began = thread_time()  # CPU time: what else runs on the machine is not ours
            _both(routes, body)
            times.append(thread_time() - began)
    gc.unfreeze()
    share = median(f / b for f, b in zip(full, bare, strict=True)) - 1.0
    mean = sum(full) / sum(bare) - 1.0
    return [
        at_most(
            "telemetry in filter + prioritize, 5,000 nodes x 8: extra time at the median", share, "", 0.25
        ),
        at_most("the same in the mean, making the devices' marks included", mean, "", 0.25),
        figure("filter + prioritize without telemetry", median(bare) * 1e3, "ms"),
        figure("filter + prioritize with telemetry", median(full) * 1e3, "ms"),
        figure("a sample of 8 devices into store and health", heard * 1e6, "us"),
    ]


def _both(routes: VerbRoutes, body: bytes) -> None:
    routes.filter(body)
    routes.prioritize(body)


def _hear(live: Lookout, now: float) -> float:
    """A sample of every node; seconds a sample."""
    samples = [_sample(number) for number in range(NODES)]
    began = perf_counter()
    for sample in samples:
        applied = live.store.apply(sample, now)
        if isinstance(applied, Refusal):
            raise TypeError(f"{sample.node}: {applied}")
        live.health.observe(applied, now)
    return (perf_counter() - began) / NODES


def _sample(node: int) -> Sample:
    gib = 1 << 30
    devices = tuple(
        Device(
            uuid=f"GPU-{node:08x}-{number:04x}",
            index=number,
            minor=number,
            readings=Readings(
                memory_total=80 * gib,
                memory_used=(node * 7 + number * 11) % 79 * gib,
                memory_reserved=gib // 2,
                utilisation_gpu=(node * 13 + number * 17) % 101,
                temperature=30 + (node + number * 5) % 60,
                throttle=8 if (node + number) % 50 == 0 else 0,
                ecc_corrected_volatile=node % 3,
                remap_pending=int(number == 0 and node % SICK_EVERY == 0),
            ),
        )
        for number in range(DEVICES)
    )
    name = node_name(node)
    return Sample(SCHEMA, name, "boot", "agent", 1, 10, 5, 0, Driver(DriverState.OK), devices)
