"""A figure, its budget, and whether it keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report; `budget` is the most (or, with `least`, the least) that is allowed."""

    name: str
    value: float
    unit: str
    budget: float | None
    ok: bool
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """The line as build/bench.json has it."""
        return asdict(self)


def at_most(name: str, value: float, unit: str, budget: float, note: str = "") -> Result:
    """A figure that must not pass its budget."""
    return Result(name, round(value, 4), unit, budget, value <= budget, note)


def at_least(name: str, value: float, unit: str, budget: float, note: str = "") -> Result:
    """A figure that must reach its budget."""
    return Result(name, round(value, 4), unit, budget, value >= budget, note)


def figure(name: str, value: float, unit: str, note: str = "") -> Result:
    """A figure without a budget, for comparison."""
    return Result(name, round(value, 4), unit, budget=None, ok=True, note=note)


def seconds(call: Callable[[], object], rounds: int = 7) -> float:
    """Median time of a call."""
    times = []
    for _ in range(rounds):
        began = perf_counter()
        call()
        times.append(perf_counter() - began)
    return median(times)


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
