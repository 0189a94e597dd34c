"""`berth selectors check` on devices as the vendors' drivers publish them (fixtures of our own)."""

from __future__ import annotations

import pytest
from rich.console import Console

from extender.api.resource import DeviceAttribute, DeviceCapacity
from extender.cli.selectors import check_selectors
from extender.model.device import DeviceFacts

NVIDIA, AMD, INTEL, DRANET = "gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "dra.net"


def nvidia(product: str, architecture: str, memory: str) -> DeviceFacts:
    return DeviceFacts(
        driver=NVIDIA,
        attributes={
            "type": DeviceAttribute(string="gpu"),
            "productName": DeviceAttribute(string=product),
            "architecture": DeviceAttribute(string=architecture),
            "cudaComputeCapability": DeviceAttribute(version="9.0.0"),
            "resource.kubernetes.io/pcieRoot": DeviceAttribute(string="pci0000:64"),
        },
        capacity={"memory": DeviceCapacity(value=memory)},
    )


DEVICES = [
    ("h100", nvidia("NVIDIA H100 80GB HBM3", "Hopper", "81559Mi")),
    ("h200", nvidia("NVIDIA H200", "Hopper", "143771Mi")),
    (
        "mi300x",
        DeviceFacts(
            driver=AMD,
            attributes={
                "type": DeviceAttribute(string="amdgpu-partition"),
                "partitionProfile": DeviceAttribute(string="cpx_nps1"),
            },
            capacity={"memory": DeviceCapacity(value="24564Mi"), "computeUnits": DeviceCapacity(value="38")},
        ),
    ),
    (
        "max1100",
        DeviceFacts(
            driver=INTEL,
            attributes={"family": DeviceAttribute(string="Max"), "sriov": DeviceAttribute(bool=False)},
            capacity={"memory": DeviceCapacity(value="48Gi"), "millicores": DeviceCapacity(value="1000")},
        ),
    ),
    (
        "eth1",
        DeviceFacts(
            driver=DRANET,
            attributes={
                "ifName": DeviceAttribute(string="eth1"),
                "rdma": DeviceAttribute(bool=False),
                "mtu": DeviceAttribute(int=1500),
                "resource.kubernetes.io/pcieRoot": DeviceAttribute(string="pci0000:64"),
            },
        ),
    ),
]
MEMORY = f"device.capacity['{NVIDIA}'].memory"


def printed(expression: str) -> tuple[int, str]:
    console = Console(record=True, width=400, file=None)
    return check_selectors(expression, console, DEVICES), console.export_text()


@pytest.mark.parametrize(
    "comparison",
    [f"{MEMORY}.isGreaterThan(quantity('80Gi'))", f"{MEMORY}.compareTo(quantity('80Gi')) >= 0"],
)
def test_an_h100_is_short_of_80gi_by_what_the_marketing_size_promises(comparison: str) -> None:
    status, text = printed(f"device.driver == '{NVIDIA}' && {comparison}")
    assert status == 0
    assert "matches 1 of 5: h200" in text
    line = next(line for line in text.splitlines() if "h100" in line)
    assert "81559Mi < 80Gi = 81920Mi, short 361Mi" in line
    assert "143771Mi" in line
    assert "1 miss by this alone" in text


def test_a_partition_with_too_few_compute_units_says_how_many() -> None:
    condition = f"device.capacity['{AMD}'].computeUnits.compareTo(quantity('304')) >= 0"
    status, text = printed(f"device.driver == '{AMD}' && {condition}")
    assert status == 1
    assert "38 < 304, short 266" in text


def test_an_equal_quantity_is_not_greater() -> None:
    _, text = printed(f"device.capacity['{INTEL}'].memory.isGreaterThan(quantity('48Gi'))")
    assert "equals 48Gi" in text


def test_a_number_names_its_distance() -> None:
    _, text = printed(f"device.attributes['{DRANET}'].mtu >= 9000")
    assert "1500 < 9000, short 7500" in text


def test_a_bool_compared_with_the_field_of_the_published_form_is_a_run_time_error() -> None:
    _, text = printed(f"device.driver == '{DRANET}' && device.attributes['{DRANET}'].rdma.bool == true")
    line = next(line for line in text.splitlines() if "eth1" in line)
    assert "no such key: bool" in line


def test_a_foreign_domain_is_read_by_its_own_name() -> None:
    _, text = printed("device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:64'")
    assert "matches 3 of 5: h100, h200, eth1" in text
    assert "no such key: pcieRoot" in text
