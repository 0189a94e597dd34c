"""What the agent knows of its node, and the samples made of it. No I/O: the clock's readings are handed in.

The last readings stay, with their age, whatever happens to the driver.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from extender.api.telemetry import (
    SCHEMA,
    Absence,
    Device,
    Driver,
    DriverState,
    Process,
    Sample,
    Xid,
)
from extender.telemetry.agent.changes import changed
from extender.telemetry.agent.frames import Answer, Heard
from extender.telemetry.agent.settings import ChangeBounds

_XIDS_KEPT: Final = 32
_UNNAMED: Final = "index-"  # the reader's name for a GPU that it has never seen alive


class NodeBook:
    """One node's book. `version` grows with every change that is worth sending at once."""

    def __init__(
        self,
        *,
        node: str,
        boot_id: str,
        agent_id: str,
        bounds: ChangeBounds,
        xid_keep_seconds: float,
        name_pods: Callable[[Iterable[Process]], tuple[Process, ...]] = tuple,
    ) -> None:
        self._node = node
        self._boot_id = boot_id
        self._agent_id = agent_id
        self._bounds = bounds
        self._keep_ns = int(xid_keep_seconds * 1e9)
        self._name_pods = name_pods
        self._sequence = 0
        self._serial = 0
        self._read_ns = 0
        self._devices: tuple[Device, ...] = ()
        self._sent: tuple[Device, ...] = ()  # as they were at the last change of version
        self._by_index: dict[int, Device] = {}  # the whole GPUs, as last seen alive
        self._processes: dict[str, tuple[Process, ...] | Absence] = {}
        self._xids: dict[str, deque[Xid]] = {}
        self._ever_ok = False
        self.driver = Driver(DriverState.STARTING)
        self.event_error = 0
        self.version = 1

    @property
    def devices(self) -> tuple[Device, ...]:
        """As last read."""
        return self._devices

    def answered(self, answer: Answer, now_ns: int, *, processes: bool) -> None:
        """A reading came back; `processes` tells whether it lists them."""
        self._read_ns = now_ns
        self._ever_ok = True
        self.event_error = answer.event_error
        named = [self._named(device) for device in answer.devices]
        devices = [device for device in named if device is not None]
        if processes:
            self._processes = {
                d.uuid: d.processes if isinstance(d.processes, Absence) else self._name_pods(d.processes)
                for d in devices
            }
        self._devices = tuple(replace(d, processes=self._processes_of(d, fresh=processes)) for d in devices)
        self._by_index = {d.index: d for d in devices if d.mig is None}
        for uuid in self._xids.keys() - {d.uuid for d in devices}:
            del self._xids[uuid]
        driver = Driver(DriverState.OK, answer.driver_version, answer.nvml_version)
        if driver != self.driver or changed(self._sent, self._devices, self._bounds):
            self._bump()
        self.driver = driver

    def _processes_of(self, device: Device, *, fresh: bool) -> tuple[Process, ...] | Absence:
        asked = fresh or device.processes is not Absence.UNSUPPORTED  # a lost device says so unasked
        if asked and isinstance(device.processes, Absence):
            return device.processes
        return self._processes.get(device.uuid, Absence.UNSUPPORTED)

    def _named(self, device: Device) -> Device | None:
        """A device that a fresh reader met dead gets the name under which it was last seen alive."""
        if not device.uuid.startswith(_UNNAMED):
            return device
        known = self._by_index.get(device.index)
        if known is None:
            return None
        return replace(device, uuid=known.uuid, minor=known.minor, name=known.name, pci=known.pci)

    def driver_is(self, state: DriverState, code: int = 0, operation: str = "", text: str = "") -> None:
        """The driver as a whole is in `state`; the last readings stay and age."""
        if state is DriverState.MISSING and self._ever_ok:
            state = DriverState.ABSENT  # its library was there before
        driver = replace(self.driver, state=state, code=code, operation=operation[:256], text=text[:256])
        if driver != self.driver:
            self.driver = driver
            self._bump()

    def heard(self, word: Heard, now_ns: int) -> bool:
        """An event came. True when it was an XID, which is kept and worth sending."""
        if word.code is None:
            return False
        self._serial += 1
        kept = self._xids.setdefault(word.uuid, deque(maxlen=_XIDS_KEPT))
        kept.append(Xid(self._serial, word.code, now_ns, word.gpu_instance))
        self._bump()
        return True

    def sample(self, now_ns: int, wall_ns: int) -> Sample:
        """The next sample: a new sequence number each time."""
        self._sequence += 1
        return self.peek(now_ns, wall_ns)

    def peek(self, now_ns: int, wall_ns: int) -> Sample:
        """The last sample again, with the age that it has now."""
        return Sample(
            schema=SCHEMA,
            node=self._node,
            boot_id=self._boot_id,
            agent_id=self._agent_id,
            sequence=max(1, self._sequence),
            sent_ns=now_ns,
            read_ns=min(self._read_ns, now_ns),
            wall_ns=wall_ns,
            driver=self.driver,
            devices=tuple(replace(d, xids=self._recent(d.uuid, now_ns)) for d in self._devices),
        )

    def _recent(self, uuid: str, now_ns: int) -> tuple[Xid, ...]:
        return tuple(x for x in self._xids.get(uuid, ()) if now_ns - x.at_ns <= self._keep_ns)

    def _bump(self) -> None:
        self.version += 1
        self._sent = self._devices
