"""Selectors: one evaluation, a new one over the fleet, and a cached one."""

from __future__ import annotations

from time import perf_counter

from bench.fleet import ledger
from bench.result import Result, at_most, seconds
from extender.allocator.columns import SelectorColumns
from extender.selectors import CompileError, Environment, prepare
from extender.selectors import compile as compile_selector

TYPICAL = (
    "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    " && device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('39Gi'))"
)
NEW = "device.attributes['gpu.nvidia.com'].productName.contains('H10{}')"
EVALUATIONS = 20_000


def run() -> list[Result]:
    """A typical three-term selector, and selectors over 40,000 devices."""
    snapshot = ledger(5000).snapshot()
    program = compile_selector(TYPICAL, Environment())
    assert not isinstance(program, CompileError)
    device = prepare(snapshot.topology.facts[0])

    def many() -> None:
        for _ in range(EVALUATIONS):
            program.evaluate(device)

    columns = SelectorColumns(Environment())
    columns.over(TYPICAL, snapshot.topology)
    times = []
    for number in range(7):
        began = perf_counter()
        columns.over(NEW.format(number), snapshot.topology)
        times.append(perf_counter() - began)
    cached = seconds(lambda: columns.over(TYPICAL, snapshot.topology), 50)
    return [
        at_most("compiled evaluation, three terms", seconds(many) / EVALUATIONS * 1e6, "us", 2.0),
        at_most("a new selector over 40,000 devices", max(times) * 1e3, "ms", 50.0, "slowest of seven"),
        at_most("a cached selector over 40,000 devices", cached * 1e3, "ms", 0.3),
    ]
