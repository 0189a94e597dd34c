"""The state machines of health, on the shipped table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api.telemetry import (
    Absence,
    Device,
    DeviceState,
    Driver,
    DriverState,
    Readings,
    Xid,
)
from extender.inventory.health import NODE, HealthBook
from extender.inventory.health_table import parse_health_table
from extender.inventory.telemetry import Applied, HeardXid

ROOT = Path(__file__).resolve().parents[2]
TABLE = parse_health_table((ROOT / "policies" / "health.yaml").read_text(), "policies/health.yaml")
QUIET = 300.0
GOOD: dict[str, int] = {"ecc_uncorrected_volatile": 0, "remap_pending": 0, "remap_failure": 0}


def told(
    state: DeviceState = DeviceState.OK,
    driver: DriverState = DriverState.OK,
    xids: tuple[tuple[int, float], ...] = (),
    read_at: float = 0.0,
    boot_id: str = "boot-1",
    vanished: bool = False,
    **readings: Any,
) -> Applied:
    device = Device(uuid="GPU-a", state=state, readings=Readings(**(GOOD | readings)))
    return Applied(
        node="n1",
        boot_id=boot_id,
        driver=Driver(driver),
        devices=[] if vanished else [device],
        rows=np.zeros(1, dtype=np.int32),
        read_at=read_at,
        xids=[HeardXid("GPU-a", Xid(serial=i, code=code, at_ns=0), at) for i, (code, at) in enumerate(xids)],
        vanished=[device] if vanished else [],
    )


def codes(book: HealthBook, now: float, *uuids: str) -> list[str]:
    return [str(f.reason) for f in book.reasons("n1", uuids or ("GPU-a",), now)]


SIGNS = [
    (told(state=DeviceState.LOST), "DeviceLost"),
    (told(vanished=True), "DeviceLost"),
    (told(state=DeviceState.RESET_REQUIRED), "DeviceUnhealthy"),
    (told(ecc_uncorrected_volatile=1), "EccUncorrectable"),
    (told(remap_pending=1), "RowRemapPending"),
    (told(remap_failure=1), "RowRemapPending"),
    (told(recovery_action=1), "DeviceUnhealthy"),
    (told(recovery_action=99), "DeviceUnhealthy"),
    (told(driver=DriverState.ABSENT), "DriverStale"),
    (told(driver=DriverState.MISMATCH), "DriverStale"),
    (told(driver=DriverState.UNRESPONSIVE), "DeviceUnhealthy"),
]


@pytest.mark.parametrize(("bad", "code"), SIGNS, ids=[f"{c} {i}" for i, (_, c) in enumerate(SIGNS)])
def test_a_reason_is_entered_at_once_and_left_after_the_quiet_time(bad: Applied, code: str) -> None:
    book = HealthBook(TABLE)
    (entered,) = book.observe(bad, 10.0)
    assert (entered.entered, str(entered.reason)) == (True, code)
    assert codes(book, 10.0) == [code]
    good = told(recovery_action=0)
    assert book.observe(good, 20.0) == []  # recovering
    assert codes(book, 20.0 + QUIET - 1) == [code]
    (left,) = book.observe(good, 20.0 + QUIET)
    assert (left.entered, str(left.reason)) == (False, code)
    assert codes(book, 20.0 + QUIET) == []


def test_seen_again_the_quiet_time_starts_anew() -> None:
    book = HealthBook(TABLE)
    book.observe(told(remap_pending=1), 0.0)
    book.observe(told(), 10.0)
    book.observe(told(remap_pending=1), 200.0)
    book.observe(told(), 210.0)
    assert codes(book, 400.0) == ["RowRemapPending"]
    assert codes(book, 510.0) == []


@pytest.mark.parametrize("driver", [DriverState.MISSING, DriverState.STARTING, DriverState.ERROR])
def test_an_agent_that_can_not_see_says_nothing_of_the_device(driver: DriverState) -> None:
    book = HealthBook(TABLE)
    assert book.observe(told(driver=driver), 0.0) == []
    assert codes(book, 0.0) == []


def test_a_reading_without_a_value_moves_nothing() -> None:
    book = HealthBook(TABLE)
    book.observe(told(ecc_uncorrected_volatile=2), 0.0)
    for now in range(10, 1000, 10):
        book.observe(told(ecc_uncorrected_volatile=Absence.ERROR), float(now))
    assert codes(book, 1000.0) == ["EccUncorrectable"]


@pytest.mark.parametrize("code", [13, 31, 43, 45, 68])
def test_faults_of_applications_are_none_of_the_device(code: int) -> None:
    book = HealthBook(TABLE)
    book.observe(told(xids=((code, 0.0),)), 0.0)
    assert codes(book, 0.0) == []


@pytest.mark.parametrize("code", [48, 79, 95, 119, 109, 4711])
def test_a_fatal_xid_counts_for_its_quiet_time(code: int) -> None:
    book = HealthBook(TABLE)
    book.observe(told(xids=((code, 0.0),)), 0.0)
    end = TABLE.quiet_of(code)
    book.observe(told(), end - 1)
    assert codes(book, end - 1) == ["DeviceUnhealthy"]
    book.observe(told(), end)
    assert codes(book, end) == []


def test_the_drivers_verdict_after_the_xid_is_preferred_to_the_table() -> None:
    book = HealthBook(TABLE)
    book.observe(told(xids=((79, 100.0),), recovery_action=0, read_at=99.0), 100.0)  # read before
    assert codes(book, 100.0 + QUIET) == ["DeviceUnhealthy"]
    book.observe(told(recovery_action=0, read_at=105.0), 105.0)
    assert codes(book, 100.0 + QUIET - 1) == ["DeviceUnhealthy"]
    assert codes(book, 100.0 + QUIET) == []


def test_a_boot_ends_what_an_xid_asked_for() -> None:
    book = HealthBook(TABLE)
    book.observe(told(xids=((79, 0.0),)), 0.0)
    book.observe(told(boot_id="boot-2"), 600.0)
    assert codes(book, 600.0 + QUIET - 1) == ["DeviceUnhealthy"]
    assert codes(book, 600.0 + QUIET) == []


def test_a_lesser_xid_does_not_shorten_a_graver_one() -> None:
    book = HealthBook(TABLE)
    book.observe(told(xids=((79, 0.0),)), 0.0)
    book.observe(told(xids=((48, 10.0),)), 10.0)
    book.observe(told(), 80_000.0)
    assert codes(book, 80_000.0) == ["DeviceUnhealthy"]


def test_a_silent_node_is_unknown_and_unknown_is_not_unhealthy() -> None:
    book = HealthBook(TABLE)
    book.observe(told(state=DeviceState.LOST), 0.0)
    assert codes(book, TABLE.silence_s) == ["DeviceLost"]
    assert codes(book, TABLE.silence_s + 1) == []
    assert list(book.unhealthy(TABLE.silence_s + 1)) == []


def test_a_node_wide_reason_holds_for_every_device_and_is_said_once() -> None:
    book = HealthBook(TABLE)
    transitions = book.observe(told(driver=DriverState.ABSENT), 0.0)
    assert [t.uuid for t in transitions] == [NODE]
    assert codes(book, 1.0, "GPU-a") == codes(book, 1.0, "GPU-z") == ["DriverStale"]
    assert list(book.unhealthy(1.0)) == [("n1", NODE)]


def test_a_parents_reason_holds_for_its_instances() -> None:
    book = HealthBook(TABLE)
    book.observe(told(state=DeviceState.LOST), 0.0)
    assert codes(book, 1.0, "MIG-1", "GPU-a") == ["DeviceLost"]
    assert codes(book, 1.0, "MIG-1") == []


def test_the_gravest_reason_comes_first() -> None:
    book = HealthBook(TABLE)
    book.observe(told(remap_pending=1, ecc_uncorrected_volatile=1, recovery_action=2), 0.0)
    assert codes(book, 0.0) == ["EccUncorrectable", "DeviceUnhealthy", "RowRemapPending"]


def test_quiet_times_end_without_a_further_sample() -> None:
    book = HealthBook(TABLE)
    book.observe(told(remap_pending=1), 0.0)
    book.observe(told(), 10.0)
    assert book.tick(10.0 + QUIET - 1) == []
    assert [t.entered for t in book.tick(10.0 + QUIET)] == [False]


def test_what_is_known_no_more_leaves() -> None:
    book = HealthBook(TABLE)
    book.observe(told(state=DeviceState.LOST), 0.0)
    assert book.retain(lambda _: {"GPU-a"}, 1.0) == []
    assert [(t.uuid, t.entered) for t in book.retain(lambda _: set(), 2.0)] == [("GPU-a", False)]
    book.observe(told(driver=DriverState.ABSENT), 3.0)
    assert book.retain(lambda _: set(), 4.0) == []  # a node's own reason stays
    book.retain(lambda _: None, 5.0)
    assert codes(book, 5.0) == []


def test_a_driver_that_changes_its_fault_changes_the_reason() -> None:
    book = HealthBook(TABLE)
    book.observe(told(driver=DriverState.UNRESPONSIVE), 0.0)
    changed = book.observe(told(driver=DriverState.ABSENT), 1.0)
    assert [(t.entered, str(t.reason)) for t in changed] == [
        (False, "DeviceUnhealthy"),
        (True, "DriverStale"),
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from([b for b, _ in SIGNS] + [told(recovery_action=0)]), st.floats(0.1, 200)),
        max_size=40,
    )
)
def test_transitions_alternate_and_agree_with_what_holds(steps: list[tuple[Applied, float]]) -> None:
    book = HealthBook(TABLE)
    holding: dict[tuple[str, str, str], int] = {}
    now = 0.0
    for seen, pause in steps:
        now += pause
        for t in book.observe(seen, now):
            key = (t.uuid, str(t.reason), "")
            holding[key] = holding.get(key, 0) + (1 if t.entered else -1)
            assert holding[key] >= 0
        expected = {reason for (_, reason, _), count in holding.items() if count}
        assert set(codes(book, now)) == expected
