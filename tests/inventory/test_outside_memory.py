"""Memory that no known pod holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.api.telemetry import Absence, Device, Process, Readings
from extender.inventory.outside_memory import memory_held_outside

GIB = 1 << 30


def device(used: int, processes: tuple[Process, ...] | Absence, total: int = 80, reserved: int = 1) -> Device:
    readings = Readings(memory_total=total * GIB, memory_used=used * GIB, memory_reserved=reserved * GIB)
    return Device(uuid="GPU-a", readings=readings, processes=processes)


FOREIGN = (Process(1, 75 * GIB),)


def test_a_foreign_process_refuses_the_pod_that_needs_more_than_is_left() -> None:
    held = memory_held_outside(40 * GIB, device(75, FOREIGN), (), fresh=True, allocated=False)
    assert held is not None
    assert (held.attainable, held.outside) == (4 * GIB, 75 * GIB)
    assert "4.0 GiB attainable, 40.0 GiB needed, 75.0 GiB held" in held.text


def test_a_small_pod_may_use_the_same_device() -> None:
    assert memory_held_outside(2 * GIB, device(75, FOREIGN), (), fresh=True, allocated=False) is None


def test_what_known_pods_hold_is_the_allocations_matter() -> None:
    known = (Process(1, 75 * GIB, "pod-1"),)
    assert memory_held_outside(40 * GIB, device(75, known), {"pod-1"}, fresh=True, allocated=True) is None
    assert memory_held_outside(40 * GIB, device(75, known), {"pod-2"}, fresh=True, allocated=True) is not None


def test_without_a_process_list_only_an_unallocated_devices_use_is_outside() -> None:
    for processes in (Absence.UNSUPPORTED, (Process(1, None, "pod-1"),)):
        seen = device(75, processes)
        assert memory_held_outside(40 * GIB, seen, {"pod-1"}, fresh=True, allocated=True) is None
        assert memory_held_outside(40 * GIB, seen, {"pod-1"}, fresh=True, allocated=False) is not None


def test_unknown_memory_never_refuses() -> None:
    assert memory_held_outside(40 * GIB, device(75, FOREIGN), (), fresh=False, allocated=False) is None
    blind = Device(uuid="GPU-a", readings=Readings(memory_total=80 * GIB))
    assert memory_held_outside(40 * GIB, blind, (), fresh=True, allocated=False) is None


@given(need=st.integers(0, 100), used=st.integers(0, 79), ours=st.integers(0, 79))
def test_it_refuses_exactly_when_foreign_use_leaves_too_little(need: int, used: int, ours: int) -> None:
    ours = min(ours, used)
    processes = (Process(1, ours * GIB, "pod-1"), Process(2, (used - ours) * GIB))
    held = memory_held_outside(need * GIB, device(used, processes), {"pod-1"}, fresh=True, allocated=True)
    assert (held is not None) == (80 - 1 - (used - ours) < need)
