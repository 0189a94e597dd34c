"""The telemetry letter: one sample of one node's devices, as `POST /telemetry/v1/samples` carries it.

MessagePack and JSON share these structs. Every reading is a whole number in NVML's own unit, or an `Absence`
that says why there is none; ranges are part of the types, so a decoder refuses NaN, negatives and nonsense
with the path of the field. Times are the sender's monotonic clock: a receiver takes differences, never the
clock itself, so a wrong wall clock does no harm.
Never: behaviour beyond encoding and decoding.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from extender.api.base import Wire

SCHEMA: Final = 1
PATH: Final = "/telemetry/v1/samples"


class Absence(StrEnum):
    """Why a reading has no value."""

    UNSUPPORTED = "unsupported"
    LOST = "lost"
    ERROR = "error"


class DriverState(StrEnum):
    """What the agent's reader could make of the driver."""

    STARTING = "starting"  # no answer yet
    OK = "ok"
    ABSENT = "absent"  # not loaded: NVML_ERROR_DRIVER_NOT_LOADED, or its library vanished under the agent
    MISMATCH = "mismatch"  # NVML_ERROR_LIB_RM_VERSION_MISMATCH: updated under the library
    MISSING = "missing"  # the agent never found a library: says nothing about the node's driver
    UNRESPONSIVE = "unresponsive"  # a call did not come back within its deadline
    ERROR = "error"


class DeviceState(StrEnum):
    """Whether a device answers."""

    OK = "ok"
    LOST = "lost"  # NVML_ERROR_GPU_IS_LOST
    RESET_REQUIRED = "reset_required"  # NVML_ERROR_RESET_REQUIRED
    ERROR = "error"


Bytes = Annotated[int, Meta(ge=0, le=1 << 50)]
Percent = Annotated[int, Meta(ge=0, le=100)]
Celsius = Annotated[int, Meta(ge=0, le=200)]
Milliwatts = Annotated[int, Meta(ge=0, le=100_000_000)]
Megahertz = Annotated[int, Meta(ge=0, le=100_000)]
Bits = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Count = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Flag = Annotated[int, Meta(ge=0, le=1)]
Small = Annotated[int, Meta(ge=0, le=65535)]
Nanoseconds = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Name = Annotated[str, Meta(max_length=256)]
Identifier = Annotated[str, Meta(min_length=1, max_length=128)]

_UNSUPPORTED: Final = Absence.UNSUPPORTED


class Readings(Wire, frozen=True, gc=False):
    """The numbers of one device. A field that the sender does not know counts as unsupported.

    The order of the fields is the order of the columns in `extender.inventory.telemetry`.
    """

    memory_total: Bytes | Absence = _UNSUPPORTED
    memory_used: Bytes | Absence = _UNSUPPORTED  # without the reserved part (nvmlMemory_v2_t)
    memory_reserved: Bytes | Absence = _UNSUPPORTED
    utilisation_gpu: Percent | Absence = _UNSUPPORTED
    utilisation_memory: Percent | Absence = _UNSUPPORTED
    temperature: Celsius | Absence = _UNSUPPORTED
    power: Milliwatts | Absence = _UNSUPPORTED
    power_limit: Milliwatts | Absence = _UNSUPPORTED
    clock_sm: Megahertz | Absence = _UNSUPPORTED
    clock_memory: Megahertz | Absence = _UNSUPPORTED
    throttle: Bits | Absence = _UNSUPPORTED  # nvmlClocksEventReason* bits
    ecc_corrected_volatile: Count | Absence = _UNSUPPORTED
    ecc_uncorrected_volatile: Count | Absence = _UNSUPPORTED
    ecc_corrected_aggregate: Count | Absence = _UNSUPPORTED
    ecc_uncorrected_aggregate: Count | Absence = _UNSUPPORTED
    remap_correctable: Count | Absence = _UNSUPPORTED
    remap_uncorrectable: Count | Absence = _UNSUPPORTED
    remap_pending: Flag | Absence = _UNSUPPORTED
    remap_failure: Flag | Absence = _UNSUPPORTED
    mig_mode: Flag | Absence = _UNSUPPORTED
    mig_pending: Flag | Absence = _UNSUPPORTED
    recovery_action: Small | Absence = _UNSUPPORTED  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (230)
    numa_node: Small | Absence = _UNSUPPORTED


class Fabric(Wire, frozen=True, gc=False):
    """nvmlGpuFabricInfo: cluster and clique mean something in state 3 (completed) only."""

    state: Small = 0
    cluster: Name = ""
    clique: Annotated[int, Meta(ge=0, le=(1 << 32) - 1)] = 0
    health: Small = 0  # summary: 1 healthy, 2 unhealthy, 3 limited capacity


class Mig(Wire, frozen=True, gc=False):
    """Where a MIG device sits in its parent: GPU and compute instance, profile and memory slices."""

    parent: Identifier
    gpu_instance: Small
    compute_instance: Small = 0
    profile: Small | Absence = _UNSUPPORTED
    start: Small | Absence = _UNSUPPORTED
    size: Small | Absence = _UNSUPPORTED


class Process(Wire, frozen=True, gc=False):
    """A process on a device; `memory` is None where the driver will not say."""

    pid: Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
    memory: Bytes | None = None
    pod_uid: Name = ""  # from the process's cgroup; empty: no pod, or not readable


class Xid(Wire, frozen=True, gc=False):
    """An XID event. `serial` counts within one run of the agent; `at_ns` is its monotonic clock."""

    serial: Count
    code: Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
    at_ns: Nanoseconds
    gpu_instance: Small | None = None


class Device(Wire, frozen=True, gc=False):
    """One GPU or MIG device, keyed by uuid."""

    uuid: Identifier
    index: Small = 0
    minor: Small | Absence = _UNSUPPORTED
    state: DeviceState = DeviceState.OK
    name: Name = ""
    pci: Name = ""  # domain:bus:device.function, lower case, four-digit domain; of the parent for MIG
    mig: Mig | None = None
    readings: Readings = Readings()
    nvlinks: Annotated[tuple[Flag, ...], Meta(max_length=64)] | Absence = _UNSUPPORTED  # 1: active
    fabric: Fabric | Absence = _UNSUPPORTED
    xids: Annotated[tuple[Xid, ...], Meta(max_length=64)] = ()
    processes: Annotated[tuple[Process, ...], Meta(max_length=1024)] | Absence = _UNSUPPORTED


class Driver(Wire, frozen=True, gc=False):
    """The driver as the reader met it; `operation` and `text` explain any state but ok."""

    state: DriverState
    version: Name = ""
    nvml: Name = ""
    code: Small = 0  # the NVML return code behind the state
    operation: Name = ""
    text: Name = ""


class Sample(Wire, frozen=True, gc=False):
    """Everything that an agent knows of its node at one instant.

    `sent_ns` and `read_ns` are of the same monotonic clock: their difference is the age of the readings.
    `wall_ns` is for people only. (`boot_id`, `agent_id`, `sequence`) orders the samples of a node.
    """

    schema: Annotated[int, Meta(ge=0, le=65535)]
    node: Identifier
    boot_id: Identifier
    agent_id: Identifier
    sequence: Annotated[int, Meta(ge=1, le=(1 << 53) - 1)]
    sent_ns: Nanoseconds
    read_ns: Nanoseconds
    wall_ns: Nanoseconds
    driver: Driver
    devices: Annotated[tuple[Device, ...], Meta(max_length=512)] = ()


class SchemaHeader(Wire, frozen=True, gc=False):
    """Only the version: what can be read of a sample of any version."""

    schema: int = 0


READINGS: Final[tuple[str, ...]] = tuple(f.name for f in msgspec.structs.fields(Readings))


def normal_pci(address: str) -> str:
    """`00000000:1A:00.0` and `0000:1a:00.0` are one address; text of another form comes back lower-cased."""
    domain, _, rest = address.strip().lower().partition(":")
    if len(domain) > 4 and domain.startswith("0" * (len(domain) - 4)):  # NVML prints eight digits, sysfs four
        domain = domain[-4:]
    return f"{domain}:{rest}" if rest else domain
