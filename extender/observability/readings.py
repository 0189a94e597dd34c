"""Metrics that are read off living objects when Prometheus asks, so that they cost nothing in between.

Never: a copy of a number that somebody else keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ReflectorReading(Protocol):
    """What a reflector says of itself."""

    @property
    def connects(self) -> int:
        """Lists and watches asked for."""

    @property
    def restarts(self) -> int:
        """Failures that were followed by a wait."""

    @property
    def lists(self) -> int:
        """Full lists delivered."""

    @property
    def relists_gone(self) -> int:
        """Lists made anew because the version was too old (410)."""

    @property
    def events(self) -> int:
        """Events delivered."""

    @property
    def undecodable(self) -> int:
        """Objects that could not be decoded."""

    def silence(self, now: float) -> float | None:
        """Seconds since the server last said anything; None before the first word."""


class ReflectorCollector(Collector):
    """Reflectors by kind; `now` is the clock of their statistics."""

    def __init__(self, read: Callable[[], Mapping[str, ReflectorReading]], now: Callable[[], float]) -> None:
        self._read = read
        self._now = now

    def collect(self) -> Iterable[Metric]:
        """All reflectors, now."""
        counters = {
            "connects": CounterMetricFamily(
                "berth_reflector_connects", "Lists and watches asked for, by kind.", labels=["kind"]
            ),
            "restarts": CounterMetricFamily(
                "berth_reflector_restarts", "Failures followed by a back-off, by kind.", labels=["kind"]
            ),
            "lists": CounterMetricFamily(
                "berth_reflector_lists", "Full lists delivered, by kind.", labels=["kind"]
            ),
            "relists_gone": CounterMetricFamily(
                "berth_reflector_expired",
                "Watches that had to start anew after 410, by kind.",
                labels=["kind"],
            ),
            "events": CounterMetricFamily(
                "berth_reflector_events", "Watch events delivered, by kind.", labels=["kind"]
            ),
            "undecodable": CounterMetricFamily(
                "berth_reflector_undecodable", "Objects that could not be decoded, by kind.", labels=["kind"]
            ),
        }
        lag = GaugeMetricFamily(
            "berth_reflector_lag_seconds",
            "Time since the API server last said anything (a bookmark comes about every minute), by kind.",
            labels=["kind"],
        )
        now = self._now()
        for kind, reading in self._read().items():
            for name, family in counters.items():
                family.add_metric([kind], getattr(reading, name))
            silence = reading.silence(now)
            if silence is not None:
                lag.add_metric([kind], silence)
        yield from counters.values()
        yield lag


@dataclass(frozen=True, slots=True)
class InventoryReading:
    """The ledger in numbers.

    `devices` is keyed by (driver, state), the state being "free", "taken" or "unavailable"; `undecodable`
    counts the objects by kind that are there but can't be read; `double_granted` counts the devices that
    several claims hold and do not share; `snapshot_age` is in seconds, None before the first snapshot.
    """

    objects: Mapping[str, int]
    devices: Mapping[tuple[str, str], int]
    synced: Mapping[str, bool]
    undecodable: Mapping[str, int] = field(default_factory=dict)
    in_flight: int = 0
    double_granted: int = 0
    snapshot_age: float | None = None


class InventoryCollector(Collector):
    """The ledger."""

    def __init__(self, read: Callable[[], InventoryReading]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The ledger, now."""
        reading = self._read()
        yield _gauge("berth_inventory_objects", "Objects in the ledger, by kind.", "kind", reading.objects)
        yield _gauge(
            "berth_inventory_undecodable_objects",
            "Objects that can't be decoded and whose devices count as taken, by kind.",
            "kind",
            reading.undecodable,
        )
        yield _gauge(
            "berth_inventory_synced",
            "Whether a kind has been listed in full, by kind.",
            "kind",
            reading.synced,
        )
        devices = GaugeMetricFamily(
            "berth_inventory_devices", "Devices by driver and state.", labels=["driver", "state"]
        )
        for (driver, state), count in reading.devices.items():
            devices.add_metric([driver, state], count)
        yield devices
        yield GaugeMetricFamily(
            "berth_inventory_in_flight_pods",
            "Pods that were offered nodes and whose fate is open.",
            reading.in_flight,
        )
        yield GaugeMetricFamily(
            "berth_inventory_double_granted_devices",
            "Devices that several claims hold and do not share.",
            reading.double_granted,
        )
        yield from _age(reading.snapshot_age)


def _age(seconds: float | None) -> Iterator[Metric]:
    age = GaugeMetricFamily("berth_snapshot_age_seconds", "Time since the snapshot in use was made.")
    if seconds is not None:
        age.add_metric([], seconds)
    yield age


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], float(number))
    return family


class CountsCollector(Collector):
    """One counter whose counts somebody else keeps: `read` gives them by the values of the labels."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        read: Callable[[], Mapping[tuple[str, ...], float]],
    ) -> None:
        """`name` without "_total"."""
        self._name, self._text, self._labels, self._read = name, text, labels, read

    def collect(self) -> Iterable[Metric]:
        """The counts, now."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for values, count in self._read().items():
            family.add_metric(values, count)
        yield family
