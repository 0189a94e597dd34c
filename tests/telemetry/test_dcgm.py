"""What dcgm-exporter's metrics mean."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from extender.api.telemetry import Absence, Device
from extender.inventory.telemetry import instance_uuid
from extender.telemetry.dcgm import DcgmReader
from extender.telemetry.exposition import parse
from tests.telemetry.expositions import DEFAULT, GPU, OTHER, exposition, row


def read(
    rows: Mapping[str, Mapping[str, object]], reader: DcgmReader | None = None, now: float = 0.0
) -> dict[str, Device]:
    devices = (reader or DcgmReader(120)).read(parse(exposition(rows), "DCGM_"), now)
    assert len({d.uuid for d in devices}) == len(devices)
    return {d.uuid: d for d in devices}


def test_the_default_metrics_become_readings_in_our_units() -> None:
    device = read({row(): DEFAULT})[GPU]
    r = device.readings
    assert (device.minor, device.pci, device.name) == (1, "0000:40:00.0", "NVIDIA H100 80GB HBM3")
    assert (r.temperature, r.power, r.clock_sm, r.clock_memory) == (42, 95500, 1980, 2619)
    assert (r.memory_used, r.memory_reserved) == (21000 << 20, 559 << 20)
    assert r.memory_total == 81559 << 20
    assert (r.utilisation_gpu, r.utilisation_memory) == (70, 20)
    assert (r.remap_correctable, r.remap_uncorrectable, r.remap_failure) == (2, 1, 0)


def test_a_series_that_is_not_there_is_not_known() -> None:
    r = read({row(): {"DCGM_FI_DEV_GPU_TEMP": 42}})[GPU].readings
    assert r.temperature == 42
    assert {r.power, r.ecc_uncorrected_volatile, r.utilisation_gpu, r.memory_total} == {Absence.ERROR}


def test_the_total_is_no_sum_of_what_is_only_in_part_there() -> None:
    parts = {"DCGM_FI_DEV_FB_FREE": 60000, "DCGM_FI_DEV_FB_USED": 21000}
    assert read({row(): parts})[GPU].readings.memory_total is Absence.ERROR
    assert read({row(): {**parts, "DCGM_FI_DEV_FB_TOTAL": 81559}})[GPU].readings.memory_total == 81559 << 20


@pytest.mark.parametrize(
    "blank", ["9223372036854775794", "2147483634", "140737488355330.000000", "NaN", "-1"]
)
def test_blank_values_are_no_readings(blank: str) -> None:
    r = read({row(): DEFAULT | {"DCGM_FI_DEV_GPU_TEMP": blank, "DCGM_FI_DEV_FB_FREE": blank}})[GPU].readings
    assert r.temperature is Absence.ERROR
    assert r.memory_total is Absence.ERROR
    assert r.clock_sm == 1980


@pytest.mark.parametrize(
    "labels",
    [
        row(hostname="hostname"),
        row().replace("UUID=", "uuid="),
        row().replace("UUID=", "gpu_uuid=").replace("modelName=", "model_name="),
        row(exported_pod="p", exported_namespace="ns", exported_container="c"),
        row().replace('pci_bus_id="00000000:40:00.0",', ""),
    ],
)
def test_every_spelling_of_labels_is_read(labels: str) -> None:
    assert read({labels: DEFAULT})[GPU].readings.temperature == 42


def test_a_time_sliced_gpu_is_one_device() -> None:
    rows = {row(pod=f"p{i}", namespace="ns", container="c"): DEFAULT for i in range(4)}
    assert list(read(rows)) == [GPU]


def test_a_mig_instance_has_its_own_memory_and_activity_and_the_gpu_its_heat() -> None:
    labels = row(GPU_I_PROFILE="3g.40gb", GPU_I_ID="2")
    devices = read({labels: DEFAULT | {"DCGM_FI_DEV_GPU_UTIL": 0}})
    assert set(devices) == {GPU, instance_uuid(GPU, 2)}
    instance = devices[instance_uuid(GPU, 2)]
    assert instance.mig is not None
    assert (instance.mig.parent, instance.mig.gpu_instance) == (GPU, 2)
    assert instance.readings.utilisation_gpu == 65  # from the profiler; 0 of GPU_UTIL means nothing here
    assert instance.readings.memory_used == 21000 << 20
    assert instance.readings.temperature is Absence.ERROR
    assert devices[GPU].readings.temperature == 42
    assert devices[GPU].readings.utilisation_gpu is Absence.ERROR


def xids(reader: DcgmReader, value: int, now: float = 0.0) -> list[int]:
    seen = read({row(): {"DCGM_FI_DEV_XID_ERRORS": value}}, reader, now)
    return [x.code for x in seen[GPU].xids]


def test_the_sticky_gauge_is_an_event_only_when_it_changes() -> None:
    reader = DcgmReader(120)
    assert xids(reader, 79) == []  # at first sight it may be days old
    assert xids(reader, 79) == []
    assert xids(reader, 48) == [48]
    assert xids(reader, 48) == []
    assert xids(reader, 0) == []  # the exporter restarted
    assert xids(reader, 48) == [48]


def test_a_growing_count_is_an_event() -> None:
    reader = DcgmReader(120)

    def heard(count: int) -> list[int]:
        labels = row(xid="95", window_size_in_ms="300000")
        seen = read({labels: {"DCGM_EXP_XID_ERRORS_COUNT": count}}, reader)
        return [x.code for x in seen[GPU].xids]

    assert heard(1) == [95]
    assert heard(1) == []
    assert heard(2) == [95]
    assert heard(0) == []


def test_a_gpu_whose_energy_stands_still_is_repeated_not_read() -> None:
    reader = DcgmReader(frozen_after_s=120)
    rows = {row(): DEFAULT, row(OTHER): DEFAULT}
    assert set(read(rows, reader, 0.0)) == {GPU, OTHER}
    rows[row(OTHER)] = DEFAULT | {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 600001}
    assert set(read(rows, reader, 121.0)) == {OTHER}
    assert reader.frozen == 1


def test_an_out_of_range_value_is_not_known() -> None:
    assert (
        read({row(): DEFAULT | {"DCGM_FI_DEV_GPU_UTIL": 5000}})[GPU].readings.utilisation_gpu is Absence.ERROR
    )


def test_rows_without_a_uuid_are_passed_over() -> None:
    assert read({'gpu="0"': DEFAULT}) == {}
