"""Metrics follow Prometheus's naming rules and can be read by its parser."""

from __future__ import annotations

import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from extender.observability.metrics import VERBS, Metrics
from extender.observability.readings import InventoryCollector, InventoryReading, ReflectorCollector

# prometheus.io/docs/practices/naming and promtool check metrics (promlint): units that are not base units.
NOT_BASE_UNITS = re.compile(
    r"_(milli|micro|nano)?(ms|us|ns|milliseconds|microseconds|nanoseconds|minutes|hours|days|weeks|"
    r"kilobytes|megabytes|gigabytes|kb|mb|gb|bits|percent|celcius|fahrenheit|grams)(_|$)"
)


class Reading:
    connects = 3
    restarts = 1
    lists = 2
    relists_gone = 1
    events = 40
    undecodable = 0

    def silence(self, now: float) -> float | None:
        return now - 10.0


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics(CollectorRegistry(), "1.2.3")
    metrics.registry.register(ReflectorCollector(lambda: {"Pod": Reading()}, lambda: 12.5))
    reading = InventoryReading(
        objects={"Pod": 5},
        devices={("gpu.example.com", "free"): 7},
        synced={"Pod": True, "Node": False},
        undecodable={"ResourceSlice": 1},
        in_flight=2,
        double_granted=3,
        snapshot_age=0.25,
    )
    metrics.registry.register(InventoryCollector(lambda: reading))
    metrics.predicted("right")
    metrics.drifted("Pod", "missing", 2)
    for verb in metrics.verbs.values():
        verb.observe(0.003)
        verb.decided("passed")
        verb.refused("DeviceUnhealthy", 3)
        verb.fault("request")
    return metrics


def families(metrics: Metrics) -> list[Metric]:
    return [family for family in metrics.registry.collect() if family.name.startswith("berth_")]


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_every_metric_has_help_and_the_prefix(metrics: Metrics) -> None:
    foreign = ("berth_", "process_", "python_")
    for family in metrics.registry.collect():
        assert family.documentation
        assert family.name.startswith(foreign)


def test_names_and_labels_are_lower_snake_case_in_base_units(metrics: Metrics) -> None:
    for family in families(metrics):
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", family.name)
        assert not NOT_BASE_UNITS.search(family.name), family.name
        for sample in family.samples:
            assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", label) for label in sample.labels)


def test_no_name_carries_its_type_or_a_suffix_of_another_type(metrics: Metrics) -> None:
    for family in families(metrics):
        words = family.name.split("_")
        assert not {"gauge", "counter", "histogram", "summary", "metric"} & set(words)
        if family.type == "gauge":
            assert words[-1] not in ("total", "count", "sum", "bucket")
        if family.type == "counter":
            assert all(sample.name.endswith(("_total", "_created")) for sample in family.samples)


def test_no_label_repeats_a_reserved_name(metrics: Metrics) -> None:
    for family in families(metrics):
        labels = {label for sample in family.samples for label in sample.labels}
        assert not labels & {"quantile", "job", "instance"}
        assert "le" not in labels or family.type == "histogram"


def test_times_are_in_seconds(metrics: Metrics) -> None:
    for family in families(metrics):
        if re.search(r"duration|lag|age|timestamp", family.name):
            assert family.name.endswith("_seconds")


def test_the_text_can_be_parsed_in_both_formats(metrics: Metrics) -> None:
    plain = generate_latest(metrics.registry).decode()
    openmetrics = generate_openmetrics(metrics.registry).decode()  # type: ignore[no-untyped-call]  # the library's
    read = list(parse_openmetrics(openmetrics))  # type: ignore[no-untyped-call]  # nor a typed parser
    expected = {family.name for family in families(metrics)}
    assert expected <= {f.name for f in text_string_to_metric_families(plain)}
    assert expected <= {family.name for family in read}


def test_every_verb_has_its_latency_from_the_start() -> None:
    metrics = Metrics(CollectorRegistry(), "1.2.3")
    assert [value(metrics, "berth_verb_duration_seconds_count", verb=verb) for verb in VERBS] == [0] * len(
        VERBS
    )


def test_a_verbs_counts_are_its_own(metrics: Metrics) -> None:
    metrics.verbs["filter"].decided("refused", "DeviceLost")
    metrics.verbs["filter"].decided("refused", "DeviceLost")
    labels = {"outcome": "refused", "reason": "DeviceLost"}
    assert value(metrics, "berth_decisions_total", verb="filter", **labels) == 2
    assert value(metrics, "berth_decisions_total", verb="bind", **labels) is None


def test_refusals_count_nodes_and_not_replies(metrics: Metrics) -> None:
    labels = {"verb": "filter", "reason": "DeviceUnhealthy"}
    assert value(metrics, "berth_node_refusals_total", **labels) == 3


def test_predictions_are_counted_by_result_and_reason(metrics: Metrics) -> None:
    metrics.predicted("unpredicted", "GaveUp")
    assert value(metrics, "berth_predictions_total", result="unpredicted", reason="GaveUp") == 1
    assert value(metrics, "berth_predictions_total", result="right", reason="none") == 1


def test_a_reflector_is_read_when_asked(metrics: Metrics) -> None:
    assert value(metrics, "berth_reflector_lag_seconds", kind="Pod") == 2.5
    assert value(metrics, "berth_reflector_events_total", kind="Pod") == 40


def test_the_inventory_is_read_when_asked(metrics: Metrics) -> None:
    assert value(metrics, "berth_inventory_devices", driver="gpu.example.com", state="free") == 7
    assert value(metrics, "berth_inventory_synced", kind="Node") == 0
    assert value(metrics, "berth_inventory_in_flight_pods") == 2
    assert value(metrics, "berth_inventory_double_granted_devices") == 3
    assert value(metrics, "berth_snapshot_age_seconds") == 0.25


def test_before_the_first_snapshot_there_is_no_age() -> None:
    registry = CollectorRegistry()
    registry.register(InventoryCollector(lambda: InventoryReading({}, {}, {})))
    assert registry.get_sample_value("berth_snapshot_age_seconds") is None


def test_two_sets_of_metrics_do_not_meet() -> None:
    one, other = (Metrics(CollectorRegistry(), "1") for _ in range(2))
    one.leader.set(1)
    assert value(other, "berth_leader") == 0
