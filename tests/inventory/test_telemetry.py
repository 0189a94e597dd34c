"""The store: whose row, which reading, how old."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from extender.api.telemetry import (
    READINGS,
    SCHEMA,
    Absence,
    Device,
    Driver,
    DriverState,
    Mig,
    Readings,
    Sample,
    Xid,
)
from extender.inventory.telemetry import (
    Ages,
    Applied,
    Refusal,
    Source,
    TelemetryStore,
    instance_uuid,
)
from extender.inventory.telemetry_columns import Cell, Freshness

S = 1_000_000_000


def gpu(uuid: str = "GPU-a", **readings: Any) -> Device:
    return Device(uuid=uuid, minor=0, pci="0000:1a:00.0", readings=Readings(**readings))


def mig(parent: str, gpu_instance: int, uuid: str = "MIG-1", **readings: Any) -> Device:
    place = Mig(parent=parent, gpu_instance=gpu_instance, profile=19, start=0, size=1)
    return Device(uuid=uuid, minor=0, mig=place, readings=Readings(**readings))


def sample(*devices: Device, sequence: int = 1, **changes: Any) -> Sample:
    whole = Sample(
        schema=SCHEMA,
        node="n1",
        boot_id="boot-1",
        agent_id="agent-1",
        sequence=sequence,
        sent_ns=1000 * S,
        read_ns=1000 * S,
        wall_ns=0,
        driver=Driver(DriverState.OK),
        devices=devices,
    )
    return replace(whole, **changes)


def applied(outcome: Applied | Refusal) -> Applied:
    assert isinstance(outcome, Applied)
    return outcome


def look(store: TelemetryStore, name: str, now: float, uuid: str = "GPU-a") -> tuple[float, Freshness]:
    node = store.node("n1")
    row = node.rows.get(uuid, -1) if node else -1
    values, states = store.columns.column(name, np.array([row], dtype=np.int32), now)
    return float(values[0]), Freshness(int(states[0]))


def test_a_reading_is_fresh_then_stale_then_absent() -> None:
    store = TelemetryStore(Ages(fresh_s=45, absent_s=300))
    store.apply(sample(gpu(temperature=40)), now=100.0)
    assert look(store, "temperature", 145.0) == (40.0, Freshness.FRESH)
    assert look(store, "temperature", 146.0) == (40.0, Freshness.STALE)
    assert look(store, "temperature", 400.5) == (0.0, Freshness.ABSENT)


def test_a_device_without_a_row_is_absent_not_idle() -> None:
    store = TelemetryStore()
    assert look(store, "utilisation_gpu", 0.0) == (0.0, Freshness.ABSENT)
    store.apply(sample(gpu(utilisation_gpu=1)), now=0.0)
    assert look(store, "utilisation_gpu", 0.0, "GPU-other")[1] is Freshness.ABSENT


def test_unsupported_and_lost_are_states_of_their_own() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(power=Absence.UNSUPPORTED, temperature=Absence.LOST)), now=0.0)
    assert look(store, "power", 1.0)[1] is Freshness.UNSUPPORTED
    assert look(store, "temperature", 1.0)[1] is Freshness.LOST
    assert look(store, "power", 301.0)[1] is Freshness.ABSENT


def test_an_error_leaves_the_last_value_to_age() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(temperature=40)), now=0.0)
    store.apply(sample(gpu(temperature=Absence.ERROR), sequence=2), now=40.0)
    assert look(store, "temperature", 41.0) == (40.0, Freshness.FRESH)
    assert look(store, "temperature", 50.0)[1] is Freshness.STALE


@given(skew=st.integers(-3600, 3600).map(lambda s: s * S), age=st.floats(0, 1000))
def test_the_senders_clocks_do_not_matter(skew: int, age: float) -> None:
    sent = 10_000 * S + skew
    plain, skewed = TelemetryStore(), TelemetryStore()
    read = int(age * 1e9)
    plain.apply(sample(gpu(temperature=40), sent_ns=10_000 * S, read_ns=10_000 * S - read), now=5.0)
    skewed.apply(sample(gpu(temperature=40), sent_ns=sent, read_ns=sent - read, wall_ns=abs(skew)), now=5.0)
    for now in (5.0, 50.0, 305.0, 2000.0):
        assert look(plain, "temperature", now) == look(skewed, "temperature", now)


def test_a_replayed_or_older_sample_changes_nothing() -> None:
    store = TelemetryStore()
    first = sample(gpu(temperature=40), sequence=7)
    store.apply(first, now=0.0)
    assert store.apply(first, now=1.0) is Refusal.REPLAYED
    assert store.apply(sample(gpu(temperature=99), sequence=6), now=2.0) is Refusal.REPLAYED
    assert look(store, "temperature", 3.0) == (40.0, Freshness.FRESH)
    node = store.node("n1")
    assert node is not None
    assert node.heard_at == 0.0


def test_a_new_agent_starts_its_numbers_anew_and_the_old_one_is_over() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(temperature=40), sequence=900), now=0.0)
    applied(store.apply(sample(gpu(temperature=41), sequence=1, agent_id="agent-2"), now=1.0))
    assert store.apply(sample(gpu(temperature=99), sequence=901), now=2.0) is Refusal.SUPERSEDED
    assert look(store, "temperature", 2.0) == (41.0, Freshness.FRESH)


@pytest.mark.parametrize(
    "bad",
    [
        sample(gpu(), gpu()),
        sample(gpu(memory_total=10, memory_used=11)),
        sample(gpu(), read_ns=1001 * S),
    ],
    ids=["a device twice", "more used than there is", "read after it was sent"],
)
def test_a_sample_that_contradicts_itself_changes_nothing(bad: Sample) -> None:
    store = TelemetryStore()
    assert store.apply(bad, now=0.0) is Refusal.CONTRADICTORY
    assert len(store) == 0
    assert store.node("n1") is None


def test_a_node_that_names_anothers_device_writes_its_own_row_only() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(temperature=40)), now=0.0)
    store.apply(sample(gpu(temperature=99), node="n2"), now=1.0)
    assert look(store, "temperature", 1.0) == (40.0, Freshness.FRESH)


def test_a_gpu_that_a_sound_driver_no_longer_lists_is_lost_and_forgotten_later() -> None:
    store = TelemetryStore(Ages(forget_s=1000))
    store.apply(sample(gpu(temperature=40), gpu("GPU-b")), now=0.0)
    outcome = applied(store.apply(sample(gpu("GPU-b"), sequence=2), now=10.0))
    assert [d.uuid for d in outcome.vanished] == ["GPU-a"]
    assert look(store, "temperature", 11.0)[1] is Freshness.LOST
    store.apply(sample(gpu("GPU-b"), sequence=3), now=1011.0)
    store.expire(1011.0)
    assert look(store, "temperature", 1011.0)[1] is Freshness.ABSENT
    assert len(store) == 1


def test_a_gpu_that_comes_back_is_as_before() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(temperature=40)), now=0.0)
    store.apply(sample(sequence=2), now=10.0)
    outcome = applied(store.apply(sample(gpu(temperature=41), sequence=3), now=20.0))
    assert outcome.vanished == []
    assert look(store, "temperature", 20.0) == (41.0, Freshness.FRESH)


def test_an_unsound_driver_makes_nothing_vanish() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(temperature=40)), now=0.0)
    gone = sample(sequence=2, driver=Driver(DriverState.ABSENT))
    assert applied(store.apply(gone, now=10.0)).vanished == []
    assert look(store, "temperature", 10.0) == (40.0, Freshness.FRESH)


def test_a_mig_device_comes_and_goes_without_being_lost() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(), mig("GPU-a", 7)), now=0.0)
    assert applied(store.apply(sample(gpu(), sequence=2), now=1.0)).vanished == []
    assert len(store) == 1


def test_xids_are_heard_once_and_anew_from_a_new_agent() -> None:
    store = TelemetryStore()
    xid = Xid(serial=1, code=79, at_ns=998 * S)
    device = replace(gpu(), xids=(xid,))
    (heard,) = applied(store.apply(sample(device), now=50.0)).xids
    assert (heard.uuid, heard.xid.code, heard.at) == ("GPU-a", 79, 48.0)
    assert applied(store.apply(sample(device, sequence=2), now=51.0)).xids == []
    assert len(applied(store.apply(sample(device, agent_id="agent-2"), now=52.0)).xids) == 1


def test_smoothing_halves_the_distance_in_a_half_life() -> None:
    store = TelemetryStore(Ages(half_life_s=60))
    rows = applied(store.apply(sample(gpu(utilisation_gpu=0)), now=0.0)).rows
    store.apply(sample(gpu(utilisation_gpu=100), sequence=2), now=60.0)
    values, states = store.columns.smoothed("utilisation_gpu", rows, 60.0)
    assert values[0] == pytest.approx(50.0)
    assert states[0] == Freshness.FRESH


def test_the_freshest_source_wins_a_reading() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(temperature=40)), now=100.0)
    unknown: dict[str, Any] = dict.fromkeys(READINGS, Absence.ERROR)
    other = Device(uuid="GPU-a", readings=Readings(**(unknown | {"temperature": 50, "power": 7})))
    store.apply_readings("n1", [other], Source.DCGM, 30.0, now=110.0)
    assert look(store, "temperature", 110.0) == (40.0, Freshness.FRESH)
    assert look(store, "power", 110.0)[1] is Freshness.FRESH  # the agent has none
    store.apply_readings("n1", [other], Source.DCGM, 30.0, now=140.0)
    assert look(store, "temperature", 140.0)[0] == 50.0


def test_at_equal_times_the_order_of_sources_decides() -> None:
    store = TelemetryStore()
    other = gpu(temperature=50)
    store.apply_readings("n1", [other], Source.PROMETHEUS, 0.0, now=100.0)
    store.apply_readings("n1", [replace(other, readings=Readings(temperature=51))], Source.DCGM, 0.0, 100.0)
    store.apply_readings("n1", [other], Source.PROMETHEUS, 0.0, now=100.0)
    assert look(store, "temperature", 100.0)[0] == 51.0


def test_unsupported_by_the_agent_does_not_hide_what_dcgm_reads() -> None:
    store = TelemetryStore()
    store.apply_readings("n1", [gpu(utilisation_gpu=70)], Source.DCGM, 0.0, now=100.0)
    store.apply(sample(gpu(utilisation_gpu=Absence.UNSUPPORTED)), now=110.0)
    assert look(store, "utilisation_gpu", 110.0) == (70.0, Freshness.FRESH)
    store.apply(sample(gpu(utilisation_gpu=Absence.UNSUPPORTED), sequence=2), now=200.0)
    assert look(store, "utilisation_gpu", 200.0)[1] is Freshness.UNSUPPORTED


def test_disagreement_beyond_the_bound_is_counted() -> None:
    store = TelemetryStore()
    store.apply(sample(gpu(temperature=40, ecc_uncorrected_volatile=0)), now=100.0)
    store.apply_readings("n1", [gpu(temperature=54, ecc_uncorrected_volatile=1)], Source.DCGM, 0.0, now=101.0)
    counted = dict(zip(READINGS, store.columns.disagreements.tolist(), strict=True))
    assert counted["temperature"] == 0
    assert counted["ecc_uncorrected_volatile"] == 1


def test_an_instance_known_by_its_place_gets_its_name_from_the_agent() -> None:
    store = TelemetryStore()
    stand_in = mig("GPU-a", 7, instance_uuid("GPU-a", 7), memory_used=5)
    store.apply_readings("n1", [stand_in], Source.DCGM, 0.0, now=0.0)
    store.apply(sample(gpu(), mig("GPU-a", 7, "MIG-x", memory_used=6)), now=1.0)
    assert len(store) == 2
    store.apply_readings("n1", [replace(stand_in, readings=Readings(memory_used=9))], Source.DCGM, 0.0, 2.0)
    assert look(store, "memory_used", 2.0, "MIG-x") == (9.0, Freshness.FRESH)


def test_two_compute_instances_of_one_gpu_instance_keep_their_rows() -> None:
    store = TelemetryStore()
    devices = (gpu(), mig("GPU-a", 1, "MIG-1"), mig("GPU-a", 1, "MIG-2"))
    store.apply(sample(*devices), now=0.0)
    before = store.layout
    store.apply(sample(*devices, sequence=2), now=1.0)
    assert (len(store), store.layout) == (3, before)


def test_a_forgotten_node_leaves_no_row_and_its_rows_are_used_again() -> None:
    store = TelemetryStore()
    for i in range(200):
        store.apply(sample(gpu(f"GPU-{i}"), node=f"n{i}"), now=float(i))
        store.forget(f"n{i}")
    assert len(store) == 0
    assert store.columns.capacity == 64


def test_a_node_that_names_new_devices_each_time_takes_bounded_room() -> None:
    store = TelemetryStore()
    for turn in range(100):
        devices = [gpu(f"GPU-{turn}-{i}") for i in range(8)]
        store.apply(sample(*devices, sequence=turn + 1), now=float(turn))
    assert len(store) == 8 + 64


def test_silent_nodes_are_forgotten() -> None:
    store = TelemetryStore(Ages(forget_s=100))
    store.apply(sample(gpu()), now=0.0)
    store.expire(100.0)
    assert store.node("n1") is not None
    store.expire(101.0)
    assert store.node("n1") is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(Source)),
            st.one_of(st.integers(0, 200), st.sampled_from(list(Absence))),
            st.floats(0, 100),
            st.floats(0, 20),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_value_is_never_replaced_by_an_older_one(
    steps: list[tuple[Source, int | Absence, float, float]],
) -> None:
    store = TelemetryStore()
    now, newest = 0.0, -np.inf
    column = READINGS.index("temperature")
    for source, value, age, pause in steps:
        now += pause
        store.apply_readings("n1", [gpu(temperature=value)], source, age, now)
        node = store.node("n1")
        assert node is not None
        row = node.rows["GPU-a"]
        if store.columns._cells[row, column] == Cell.VALUE:
            at = float(store.columns._read_at[row, column])
            assert at >= newest
            newest = at
        else:
            newest = -np.inf
