from __future__ import annotations

import msgspec

from extender.admission.ward import Ward, ward
from extender.api.telemetry import Device, DeviceState, DriverState
from extender.model.device import DeviceID
from extender.model.reason import Reason
from tests.verbs.live import DRIVER, Live, gpu


def look(live: Live) -> Ward:
    return ward(live.ledger.snapshot().topology, live.lookout, live.now)


def lost(node: str, number: int) -> Device:
    return msgspec.structs.replace(gpu(node, number), state=DeviceState.LOST)


def of(node: str, number: int) -> DeviceID:
    return DeviceID(DRIVER, node, f"gpu-{number}")


def test_a_sick_device_is_named_and_its_neighbour_is_not() -> None:
    live = Live()
    live.tell_all()
    live.tell("n0", lost("n0", 0), gpu("n0", 1))
    seen = look(live)
    assert seen.sick == {of("n0", 0): Reason.DEVICE_LOST}
    assert not seen.doubtful
    assert seen.published == 4
    assert seen.heard(of("n0", 0))


def test_devices_of_a_node_without_a_driver_are_doubtful() -> None:
    live = Live()
    live.tell_all()
    live.tell("n0", driver=DriverState.ABSENT)
    seen = look(live)
    assert seen.sick == {}
    assert seen.doubtful == {of("n0", 0), of("n0", 1)}


def test_a_device_that_nobody_tells_of_or_that_is_not_published_is_not_heard() -> None:
    live = Live()
    live.tell("n0", gpu("n0", 0), gpu("n0", 1))
    seen = look(live)
    assert seen.heard(of("n0", 1))
    assert not seen.heard(of("n1", 0))
    assert not seen.heard(of("n0", 7))
    live.now += live.lookout.store.ages.fresh_s + 1
    assert not look(live).heard(of("n0", 1))
