"""What the agent remembers and what makes a sample worth sending."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from extender.api.telemetry import Absence, Device, DeviceState, DriverState, Process, Readings
from extender.telemetry.agent.book import NodeBook
from extender.telemetry.agent.frames import Answer, Heard
from extender.telemetry.agent.settings import ChangeBounds

S = 1_000_000_000


def gpu(**readings: Any) -> Device:
    base = {"temperature": 40, "memory_used": 0, "throttle": 1, "ecc_corrected_volatile": 0, "power": 100_000}
    return Device(uuid="GPU-a", index=0, pci="0000:1a:00.0", readings=Readings(**(base | readings)))


def answer(*devices: Device) -> Answer:
    return Answer(1, "580", "13", devices)


def book() -> NodeBook:
    made = NodeBook(node="n1", boot_id="b", agent_id="a", bounds=ChangeBounds(), xid_keep_seconds=600.0)
    made.answered(answer(gpu()), 0, processes=False)
    return made


@pytest.mark.parametrize(
    ("readings", "worth"),
    [
        ({}, False),
        ({"temperature": 45}, False),
        ({"temperature": 46}, True),
        ({"temperature": Absence.ERROR}, True),
        ({"memory_used": 256 << 20}, False),
        ({"memory_used": (256 << 20) + 1}, True),
        ({"throttle": 4}, False),
        ({"throttle": 1 | 64}, True),
        ({"ecc_corrected_volatile": 1}, True),
        ({"clock_sm": 300}, False),
    ],
)
def test_what_is_worth_sending_ahead_of_the_heartbeat(readings: dict[str, Any], worth: bool) -> None:
    made = book()
    before = made.version
    made.answered(answer(gpu(**readings)), S, processes=False)
    assert (made.version > before) is worth


def test_a_slow_drift_is_measured_from_what_was_sent() -> None:
    made = book()
    before = made.version
    for i in range(1, 7):
        made.answered(answer(gpu(temperature=40 + i)), i * S, processes=False)
    assert made.version == before + 1


def test_a_new_state_device_or_driver_is_worth_sending() -> None:
    made = book()
    for step in (
        lambda: made.answered(answer(replace(gpu(), state=DeviceState.LOST)), S, processes=False),
        lambda: made.answered(answer(), S, processes=False),
        lambda: made.driver_is(DriverState.MISMATCH, 18, "nvmlInit"),
        lambda: made.heard(Heard("GPU-a", 79), S),
    ):
        before = made.version
        step()
        assert made.version == before + 1


def test_processes_stay_until_they_are_listed_again() -> None:
    made = book()
    listed = replace(gpu(), processes=(Process(7, 5),))
    made.answered(answer(listed), S, processes=True)
    made.answered(answer(gpu()), 2 * S, processes=False)
    assert made.devices[0].processes == (Process(7, 5),)
    made.answered(answer(replace(gpu(), processes=())), 3 * S, processes=True)
    assert not made.devices[0].processes


def test_a_driver_fault_keeps_the_readings_and_their_age() -> None:
    made = book()
    made.driver_is(DriverState.UNRESPONSIVE, 0, "nvmlDeviceGetTemperature")
    sample = made.sample(100 * S, 0)
    assert [d.uuid for d in sample.devices] == ["GPU-a"]
    assert sample.sent_ns - sample.read_ns == 100 * S
    assert sample.driver.version == "580"


def test_a_library_that_vanished_means_no_driver_but_one_never_found_means_nothing() -> None:
    never = NodeBook(node="n1", boot_id="b", agent_id="a", bounds=ChangeBounds(), xid_keep_seconds=600.0)
    never.driver_is(DriverState.MISSING, 12)
    assert never.driver.state is DriverState.MISSING
    before = book()
    before.driver_is(DriverState.MISSING, 12)
    assert before.driver.state is DriverState.ABSENT


def test_xids_are_kept_for_a_while_and_numbered() -> None:
    made = book()
    made.heard(Heard("GPU-a", 13), 0)
    made.heard(Heard("GPU-a", 79, 7), 500 * S)
    xids = made.sample(601 * S, 0).devices[0].xids
    assert [(x.serial, x.code, x.gpu_instance) for x in xids] == [(2, 79, 7)]


def test_many_xids_take_bounded_room() -> None:
    made = book()
    for i in range(1000):
        made.heard(Heard("GPU-a", 31), i)
    assert len(made.sample(2000, 0).devices[0].xids) == 32


def test_each_sample_has_the_next_number_and_a_look_has_none() -> None:
    made = book()
    numbers = [made.sample(S, 0).sequence, made.peek(S, 0).sequence, made.sample(S, 0).sequence]
    assert numbers == [1, 1, 2]
