"""One pass over all devices with nvidia-ml-py. Imported by the reader process only.

Per field a value or an absence; a lost GPU costs one call, not twenty; static facts are asked once.
Never: process lists unless asked, PCIe throughput (20 ms a counter), or retries.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import pynvml
from msgspec.structs import replace

from extender.api.telemetry import (
    Absence,
    Device,
    DeviceState,
    DriverState,
    Fabric,
    Mig,
    Process,
    Readings,
    normal_pci,
)
from extender.telemetry.agent.progress import Progress
from extender.telemetry.sound import sound

T = TypeVar("T")

_UNINITIALIZED, _NOT_SUPPORTED, _NOT_FOUND, _DRIVER_NOT_LOADED = 1, 3, 6, 9
_LIBRARY_NOT_FOUND, _FUNCTION_NOT_FOUND, _GPU_IS_LOST, _RESET_REQUIRED = 12, 13, 15, 16
_LIB_RM_VERSION_MISMATCH, _ARGUMENT_VERSION_MISMATCH = 18, 25
# NVML codes that speak of the whole driver, not of one device or field.
GLOBAL_FAULTS: Final = {
    _UNINITIALIZED: DriverState.ERROR,
    _DRIVER_NOT_LOADED: DriverState.ABSENT,
    _LIBRARY_NOT_FOUND: DriverState.MISSING,
    _LIB_RM_VERSION_MISMATCH: DriverState.MISMATCH,
}
_ABSENCES: Final = {
    _NOT_SUPPORTED: Absence.UNSUPPORTED,
    _FUNCTION_NOT_FOUND: Absence.UNSUPPORTED,  # an older driver than the bindings
    _ARGUMENT_VERSION_MISMATCH: Absence.UNSUPPORTED,  # likewise
    _GPU_IS_LOST: Absence.LOST,
}
_STATES: Final = {_GPU_IS_LOST: DeviceState.LOST, _RESET_REQUIRED: DeviceState.RESET_REQUIRED}
_RECOVERY_ACTION: Final = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_MAX_LINKS: Final = 36


class GlobalFault(Exception):  # noqa: N818 - NVML's fault, reported as `frames.Fault`
    """The driver went away or never was; `code` is the NVML return."""

    def __init__(self, code: int, operation: str) -> None:
        super().__init__(f"{operation}: NVML error {code}")
        self.code = code
        self.operation = operation
        self.state = GLOBAL_FAULTS.get(code, DriverState.ERROR)


class _DeviceFault(Exception):  # noqa: N818 - ends the reading of one device
    def __init__(self, state: DeviceState) -> None:
        super().__init__(state)
        self.state = state


class Library:
    """The opened library: `read()` is one pass. Not for use from two threads at once."""

    def __init__(self, progress: Progress, sysfs: Path) -> None:
        """Open it. Raises GlobalFault when that fails."""
        self._progress = progress
        self._sysfs = sysfs
        self._known: dict[int, Device] = {}  # by index: who to name when a GPU stops answering
        self._links: dict[str, int] = {}  # by uuid: links that exist
        self._ask_globally("nvmlInit", pynvml.nvmlInit)
        self.driver_version = self._ask_globally(
            "nvmlSystemGetDriverVersion", pynvml.nvmlSystemGetDriverVersion
        )
        self.nvml_version = self._ask_globally("nvmlSystemGetNVMLVersion", pynvml.nvmlSystemGetNVMLVersion)

    def close(self) -> None:
        """Shut the library down; a fault of it no longer matters."""
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return

    def read(self, *, processes: bool) -> tuple[Device, ...]:
        """All GPUs and their MIG devices, in index order. Raises GlobalFault."""
        count = self._ask_globally("nvmlDeviceGetCount", pynvml.nvmlDeviceGetCount)
        found: list[Device] = []
        for index in range(count):
            found.extend(self._gpu(index, processes=processes))
        for index in [i for i in self._known if i >= count]:
            del self._known[index]
        return tuple(found)

    def handles(self) -> dict[str, Any]:
        """Handles of the GPUs that answer, by uuid: what events are registered on."""
        answering: dict[str, Any] = {}
        for index, device in list(self._known.items()):
            try:
                answering[device.uuid] = pynvml.nvmlDeviceGetHandleByIndex(index)
            except pynvml.NVMLError:
                continue  # its own reading says what is wrong with it
        return answering

    def _ask_globally(self, operation: str, call: Callable[[], T]) -> T:
        self._progress.mark(operation)
        try:
            return call()
        except pynvml.NVMLError as error:
            raise GlobalFault(int(error.value), operation) from error

    def _ask(self, operation: str, call: Callable[..., T], *arguments: Any) -> T | Absence:
        self._progress.mark(operation)
        try:
            return call(*arguments)
        except pynvml.NVMLError as error:
            code = int(error.value)
            if code in {_UNINITIALIZED, _DRIVER_NOT_LOADED, _LIB_RM_VERSION_MISMATCH}:
                raise GlobalFault(code, operation) from error
            if code in _STATES:
                raise _DeviceFault(_STATES[code]) from error
            return _ABSENCES.get(code, Absence.ERROR)

    def _must(self, operation: str, call: Callable[..., T], *arguments: Any) -> T:
        answer = self._ask(operation, call, *arguments)
        if isinstance(answer, Absence):
            raise _DeviceFault(DeviceState.ERROR)
        return answer

    def _gpu(self, index: int, *, processes: bool) -> list[Device]:
        known = self._known.get(index)
        try:
            handle = self._must("nvmlDeviceGetHandleByIndex", pynvml.nvmlDeviceGetHandleByIndex, index)
            uuid = self._must("nvmlDeviceGetUUID", pynvml.nvmlDeviceGetUUID, handle)
            if known is None or known.uuid != uuid:
                known = self._identity(index, handle, uuid)
                self._known[index] = known
            device = self._whole(known, handle, processes=processes)
            return [device, *self._instances(device, handle, processes=processes)]
        except _DeviceFault as fault:
            absent = Absence.LOST if fault.state is DeviceState.LOST else Absence.ERROR
            nobody = Device(uuid=f"index-{index}", index=index)
            return [silent(known or nobody, fault.state, absent)]

    def _identity(self, index: int, handle: Any, uuid: str) -> Device:
        pci = self._ask("nvmlDeviceGetPciInfo", pynvml.nvmlDeviceGetPciInfo, handle)
        name = self._ask("nvmlDeviceGetName", pynvml.nvmlDeviceGetName, handle)
        return Device(
            uuid=uuid,
            index=index,
            minor=self._ask("nvmlDeviceGetMinorNumber", pynvml.nvmlDeviceGetMinorNumber, handle),
            name="" if isinstance(name, Absence) else name,
            pci="" if isinstance(pci, Absence) else normal_pci(pci.busId),
        )

    def _whole(self, known: Device, handle: Any, *, processes: bool) -> Device:
        ask = self._ask
        total, used, reserved = self._memory(handle)
        rates = ask("nvmlDeviceGetUtilizationRates", pynvml.nvmlDeviceGetUtilizationRates, handle)
        rows = ask("nvmlDeviceGetRemappedRows", pynvml.nvmlDeviceGetRemappedRows, handle)
        mig = ask("nvmlDeviceGetMigMode", pynvml.nvmlDeviceGetMigMode, handle)
        readings = Readings(
            memory_total=total,
            memory_used=used,
            memory_reserved=reserved,
            utilisation_gpu=rates if isinstance(rates, Absence) else int(rates.gpu),
            utilisation_memory=rates if isinstance(rates, Absence) else int(rates.memory),
            temperature=ask("nvmlDeviceGetTemperature", pynvml.nvmlDeviceGetTemperature, handle, 0),
            power=ask("nvmlDeviceGetPowerUsage", pynvml.nvmlDeviceGetPowerUsage, handle),
            power_limit=ask(
                "nvmlDeviceGetEnforcedPowerLimit", pynvml.nvmlDeviceGetEnforcedPowerLimit, handle
            ),
            clock_sm=self._clock(handle, pynvml.NVML_CLOCK_SM),
            clock_memory=self._clock(handle, pynvml.NVML_CLOCK_MEM),
            throttle=self._throttle(handle),
            ecc_corrected_volatile=self._ecc(handle, 0, 0),
            ecc_uncorrected_volatile=self._ecc(handle, 1, 0),
            ecc_corrected_aggregate=self._ecc(handle, 0, 1),
            ecc_uncorrected_aggregate=self._ecc(handle, 1, 1),
            remap_correctable=rows if isinstance(rows, Absence) else rows[0],
            remap_uncorrectable=rows if isinstance(rows, Absence) else rows[1],
            remap_pending=rows if isinstance(rows, Absence) else int(bool(rows[2])),
            remap_failure=rows if isinstance(rows, Absence) else int(bool(rows[3])),
            mig_mode=mig if isinstance(mig, Absence) else mig[0],
            mig_pending=mig if isinstance(mig, Absence) else mig[1],
            recovery_action=self._recovery_action(handle),
            numa_node=self._numa(handle, known.pci),
        )
        return replace(
            known,
            readings=sound(readings),
            nvlinks=self._nvlinks(known.uuid, handle),
            fabric=self._fabric(handle),
            processes=self._processes(handle) if processes else Absence.UNSUPPORTED,
        )

    def _instances(self, gpu: Device, handle: Any, *, processes: bool) -> list[Device]:
        if gpu.readings.mig_mode != 1:
            return []
        most = self._ask("nvmlDeviceGetMaxMigDeviceCount", pynvml.nvmlDeviceGetMaxMigDeviceCount, handle)
        found: list[Device] = []
        for index in range(0 if isinstance(most, Absence) else most):
            self._progress.mark("nvmlDeviceGetMigDeviceHandleByIndex")
            try:
                instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except pynvml.NVMLError as error:
                if error.value == _GPU_IS_LOST:
                    break
                continue  # NOT_FOUND: an empty place, the normal case
            try:
                device = self._instance(gpu, handle, instance, index, processes=processes)
            except _DeviceFault:
                continue  # destroyed between two calls; the parent's state tells the rest
            if device is not None:
                found.append(device)
        return found

    def _instance(
        self, gpu: Device, parent: Any, handle: Any, index: int, *, processes: bool
    ) -> Device | None:
        ask = self._ask
        uuid = ask("nvmlDeviceGetUUID", pynvml.nvmlDeviceGetUUID, handle)
        gpu_instance = ask("nvmlDeviceGetGpuInstanceId", pynvml.nvmlDeviceGetGpuInstanceId, handle)
        if isinstance(uuid, Absence) or isinstance(gpu_instance, Absence):
            return None
        compute = ask("nvmlDeviceGetComputeInstanceId", pynvml.nvmlDeviceGetComputeInstanceId, handle)
        name = ask("nvmlDeviceGetName", pynvml.nvmlDeviceGetName, handle)
        total, used, reserved = self._memory(handle)
        profile, start, size = self._placement(parent, gpu_instance)
        return Device(
            uuid=uuid,
            index=index,
            minor=gpu.minor,
            name="" if isinstance(name, Absence) else name,
            pci=gpu.pci,
            mig=Mig(
                parent=gpu.uuid,
                gpu_instance=gpu_instance,
                compute_instance=0 if isinstance(compute, Absence) else compute,
                profile=profile,
                start=start,
                size=size,
            ),
            readings=sound(Readings(memory_total=total, memory_used=used, memory_reserved=reserved)),
            processes=self._processes(handle) if processes else Absence.UNSUPPORTED,
        )

    def _placement(
        self, parent: Any, gpu_instance: int
    ) -> tuple[int | Absence, int | Absence, int | Absence]:
        instance = self._ask(
            "nvmlDeviceGetGpuInstanceById", pynvml.nvmlDeviceGetGpuInstanceById, parent, gpu_instance
        )
        if isinstance(instance, Absence):
            return instance, instance, instance
        info = self._ask("nvmlGpuInstanceGetInfo", pynvml.nvmlGpuInstanceGetInfo, instance)
        if isinstance(info, Absence):
            return info, info, info
        return int(info.profileId), int(info.placement.start), int(info.placement.size)

    def _memory(self, handle: Any) -> tuple[int | Absence, int | Absence, int | Absence]:
        operation = "nvmlDeviceGetMemoryInfo"
        info = self._ask(operation, pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
        if not isinstance(info, Absence):
            return int(info.total), int(info.used), int(info.reserved)
        older = self._ask(operation, pynvml.nvmlDeviceGetMemoryInfo, handle)
        if isinstance(older, Absence):
            return older, older, older
        return int(older.total), int(older.used), Absence.UNSUPPORTED  # v1: used includes the reserved part

    def _clock(self, handle: Any, kind: int) -> int | Absence:
        return self._ask("nvmlDeviceGetClockInfo", pynvml.nvmlDeviceGetClockInfo, handle, kind)

    def _throttle(self, handle: Any) -> int | Absence:
        new = self._ask(
            "nvmlDeviceGetCurrentClocksEventReasons", pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle
        )
        if new is not Absence.UNSUPPORTED:
            return new
        return self._ask(  # its name before driver 535
            "nvmlDeviceGetCurrentClocksThrottleReasons",
            pynvml.nvmlDeviceGetCurrentClocksThrottleReasons,
            handle,
        )

    def _ecc(self, handle: Any, error: int, counter: int) -> int | Absence:
        operation = "nvmlDeviceGetTotalEccErrors"
        return self._ask(operation, pynvml.nvmlDeviceGetTotalEccErrors, handle, error, counter)

    def _recovery_action(self, handle: Any) -> int | Absence:
        values = self._ask(
            "nvmlDeviceGetFieldValues", pynvml.nvmlDeviceGetFieldValues, handle, [_RECOVERY_ACTION]
        )
        if isinstance(values, Absence):
            return values
        value = values[0]
        if value.nvmlReturn:
            return _ABSENCES.get(int(value.nvmlReturn), Absence.ERROR)
        return int(
            value.value.ullVal
            if value.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
            else value.value.uiVal
        )

    def _numa(self, handle: Any, pci: str) -> int | Absence:
        answer = self._ask("nvmlDeviceGetNumaNodeId", pynvml.nvmlDeviceGetNumaNodeId, handle)
        if not isinstance(answer, Absence):
            return answer if answer >= 0 else Absence.UNSUPPORTED
        try:  # NVML answers on coherent platforms only; the kernel knows for every PCI device
            node = int((self._sysfs / "bus/pci/devices" / pci / "numa_node").read_text())
        except (OSError, ValueError):
            return answer
        return node if node >= 0 else Absence.UNSUPPORTED

    def _nvlinks(self, uuid: str, handle: Any) -> tuple[int, ...] | Absence:
        states: list[int] = []
        known = self._links.get(uuid, 0)
        for link in range(known or _MAX_LINKS):
            state = self._ask("nvmlDeviceGetNvLinkState", pynvml.nvmlDeviceGetNvLinkState, handle, link)
            if isinstance(state, Absence):
                if not states:
                    return state
                if not known:
                    break  # past the last link
            states.append(int(state == 1))
        self._links[uuid] = len(states)
        return tuple(states)

    def _fabric(self, handle: Any) -> Fabric | Absence:
        info = pynvml.c_nvmlGpuFabricInfo_v3_t()
        info.version = pynvml.nvmlGpuFabricInfo_v3
        answer = self._ask(
            "nvmlDeviceGetGpuFabricInfoV", pynvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(info)
        )
        if isinstance(answer, Absence):
            return answer
        raw = bytes(info.clusterUuid).hex()
        cluster = f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}" if int(raw, 16) else ""
        return Fabric(int(info.state), cluster, int(info.cliqueId), int(info.healthSummary))

    def _processes(self, handle: Any) -> tuple[Process, ...] | Absence:
        found: dict[int, Process] = {}
        for operation in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses"):
            answer = self._ask(operation, getattr(pynvml, operation), handle)
            if isinstance(answer, Absence):
                if operation == "nvmlDeviceGetComputeRunningProcesses":
                    return answer
                continue
            for process in answer:
                memory = process.usedGpuMemory
                found[process.pid] = Process(process.pid, None if memory is None else int(memory))
        return tuple(found[pid] for pid in sorted(found))


def silent(known: Device, state: DeviceState, absent: Absence) -> Device:
    """A device that does not answer: its identity, and nothing else."""
    readings = Readings(*[absent] * len(Readings.__struct_fields__))
    return replace(known, state=state, readings=readings, nvlinks=absent, fabric=absent, processes=absent)
