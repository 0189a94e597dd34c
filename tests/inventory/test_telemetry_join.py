"""Which telemetry speaks of which published device."""

from __future__ import annotations

from extender.api.resource import DeviceAttribute
from extender.api.telemetry import SCHEMA, Device, Driver, DriverState, Mig, Sample
from extender.inventory.telemetry import TelemetryStore
from extender.inventory.telemetry_join import Joined, join
from extender.model.device import DeviceFacts, DeviceID

DRIVER = "gpu.nvidia.com"


def store() -> TelemetryStore:
    there = TelemetryStore()
    devices = (
        Device(uuid="GPU-a", index=0, minor=0, pci="0000:1a:00.0"),
        Device(uuid="GPU-b", index=1, minor=1, pci="0000:2a:00.0"),
        Device(
            uuid="MIG-b1",
            index=0,
            minor=1,
            mig=Mig(parent="GPU-b", gpu_instance=9, profile=19, start=2, size=1),
        ),
    )
    there.apply(Sample(SCHEMA, "n1", "boot", "agent", 1, 9, 9, 0, Driver(DriverState.OK), devices), now=0.0)
    return there


def published(name: str, node: str = "n1", **attributes: str) -> tuple[DeviceID, DeviceFacts]:
    given = {k.replace("__", "/").replace("_", "."): DeviceAttribute(string=v) for k, v in attributes.items()}
    return DeviceID(DRIVER, node, name), DeviceFacts(DRIVER, given)


def joined(there: TelemetryStore, *devices: tuple[DeviceID, DeviceFacts]) -> Joined:
    return join(there, [(row, *device) for row, device in enumerate(devices)])


def uuid_of(there: TelemetryStore, row: int) -> str:
    device = there.device(row)
    return device.uuid if device else ""


def test_by_uuid_first() -> None:
    there = store()
    found = joined(there, published("gpu-0", uuid="GPU-b"))
    assert uuid_of(there, found.rows[0]) == "GPU-b"


def test_another_gpu_at_the_same_address_is_not_the_published_one() -> None:
    found = joined(
        store(), published("gpu-0", uuid="GPU-old", resource_kubernetes_io__pciBusID="0000:1a:00.0")
    )
    assert found.rows.tolist() == [-1]
    assert found.published_not_seen == (DeviceID(DRIVER, "n1", "gpu-0"),)


def test_then_by_pci_address_whatever_its_spelling() -> None:
    there = store()
    for address in ("0000:2a:00.0", "00000000:2A:00.0"):
        found = joined(there, published("card-7", resource_kubernetes_io__pciBusID=address))
        assert uuid_of(there, found.rows[0]) == "GPU-b"


def test_then_by_name() -> None:
    there = store()
    found = joined(there, published("gpu-1"), published("gpu-7"), published("nic-1"))
    assert [uuid_of(there, r) for r in found.rows] == ["GPU-b", "", ""]


def test_a_mig_device_by_parent_and_placement() -> None:
    there = store()
    cut = published("gpu-1-mig-1g12gb-19-2")
    not_cut = published("gpu-1-mig-1g12gb-19-3")
    found = joined(there, cut, not_cut)
    assert [uuid_of(there, r) for r in found.rows] == ["MIG-b1", ""]
    assert [uuid_of(there, r) for r in found.gpus] == ["GPU-b", "GPU-b"]


def test_a_device_of_another_node_is_never_met() -> None:
    found = joined(store(), published("gpu-0", node="n2", uuid="GPU-a"))
    assert found.rows.tolist() == [-1]


def test_what_is_seen_and_not_published_is_named() -> None:
    found = joined(store(), published("gpu-1-mig-1g12gb-19-2"))
    assert found.seen_not_published == (("n1", "GPU-a"),)  # the parent of a published instance is published
    assert found.published_not_seen == ()


def test_rows_that_are_not_given_have_no_telemetry() -> None:
    there = store()
    device, facts = published("gpu-0", uuid="GPU-a")
    found = join(there, [(3, device, facts)])
    assert [uuid_of(there, r) for r in found.rows] == ["", "", "", "GPU-a"]
