"""The fast reader of text expositions agrees with prometheus_client's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from extender.telemetry.exposition import ExpositionError, Series, parse

values = st.one_of(st.floats(), st.integers(-(10**12), 10**12).map(float))
labels = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=12), values), min_size=1, max_size=5
)


@given(labels)
def test_what_prometheus_client_writes_is_read_alike(rows: list[tuple[str, float]]) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("DCGM_thing", "Help with \\ and\nlines.", ["a", "b"], registry=registry)
    for label, value in rows:
        gauge.labels(label, "x").set(value)
    text = generate_latest(registry).decode()
    theirs = [
        Series(s.name, dict(s.labels), float(s.value))
        for family in text_string_to_metric_families(text)
        for s in family.samples
    ]
    ours = list(parse(text, "DCGM_"))
    assert [(o.name, o.labels) for o in ours] == [(t.name, t.labels) for t in theirs]
    for our, their in zip(ours, theirs, strict=True):
        assert our.value == their.value or (math.isnan(our.value) and math.isnan(their.value))


def test_other_metrics_are_passed_over_unread() -> None:
    text = 'go_info{version="x"} broken\nDCGM_A{gpu="0"} 1 1700000000000\n# HELP DCGM_A x\n\nDCGM_B 2e3\r\n'
    assert list(parse(text, "DCGM_")) == [Series("DCGM_A", {"gpu": "0"}, 1.0), Series("DCGM_B", {}, 2000.0)]


@pytest.mark.parametrize(
    "line",
    ['DCGM_A{gpu="0" 1', "DCGM_A{gpu=0} 1", "DCGM_A one", "DCGM_A", 'DCGM_A{gpu="0"}', 'DCGM_A{="0"} 1'],
)
def test_a_line_that_is_no_sample_is_named(line: str) -> None:
    with pytest.raises(ExpositionError, match="line 2"):
        list(parse(f"DCGM_B 1\n{line}\n", "DCGM_"))


def test_a_hostile_line_takes_no_time() -> None:
    with pytest.raises(ExpositionError):
        list(parse("DCGM_A{" + 'a="\\\\",' * 20_000 + "\n", "DCGM_"))
