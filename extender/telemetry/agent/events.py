"""The reader's event thread: XIDs as they happen. Imported by the reader process only.

One thread owns the event set: it registers, waits, and hands over what it heard.
Never: reads devices; waits longer than 5000 ms, as long as both NVIDIA plugins do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import pynvml

from extender.telemetry.agent.frames import Heard

MAX_WAIT_MS: Final = 5000
_XID, _NO_INSTANCE, _TIMEOUT, _NOT_SUPPORTED = 8, 0xFFFFFFFF, 10, 3
# XidCriticalError, DoubleBitEccError, GpuUnavailable, GpuRecoveryAction
_WANTED: Final = _XID | 2 | 0x4000 | 0x8000
_RETRY_S: Final = 1.0


class EventThread:
    """Started once; `watch()` names the devices, `error` is the NVML code for which nothing is heard."""

    def __init__(self, wait_ms: int, hear: Callable[[Heard], None]) -> None:
        self._wait_ms = min(wait_ms, MAX_WAIT_MS)
        self._hear = hear
        self._wanted: Mapping[str, Any] = {}
        self._stop = threading.Event()
        self._registered = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml-events", daemon=True)
        self.error = 0

    def start(self, handles: Mapping[str, Any], patience_s: float) -> None:
        """Register, then wait for events. Returns once registered, or after `patience_s`."""
        self._wanted = handles
        self._thread.start()
        self._registered.wait(patience_s)

    def watch(self, handles: Mapping[str, Any]) -> None:
        """The devices that answer now: new ones are registered within one wait."""
        self._wanted = handles

    def stop(self) -> bool:
        """Ask the thread to end; True when it did within a wait and a second."""
        self._stop.set()
        self._thread.join(self._wait_ms / 1000 + 1.0)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen(pynvml.nvmlEventSetCreate())
            except pynvml.NVMLError as error:
                self.error = int(error.value)
                self._registered.set()
                self._hear(Heard(uuid=""))  # all devices are suspect: read again at once
                self._stop.wait(_RETRY_S)

    def _listen(self, events: Any) -> None:
        registered: set[str] = set()
        try:
            while not self._stop.is_set():
                self._register(events, registered)
                self._registered.set()
                try:
                    event = pynvml.nvmlEventSetWait(events, self._wait_ms)
                except pynvml.NVMLError as error:
                    if error.value == _TIMEOUT:
                        continue
                    raise
                self._hear(self._heard(event))
        finally:
            try:
                pynvml.nvmlEventSetFree(events)
            except pynvml.NVMLError as error:
                self.error = int(error.value)

    def _register(self, events: Any, registered: set[str]) -> None:
        wanted = self._wanted
        error = 0
        for uuid, handle in wanted.items():
            if uuid in registered:
                continue
            try:
                supported = pynvml.nvmlDeviceGetSupportedEventTypes(handle)
                pynvml.nvmlDeviceRegisterEvents(handle, _WANTED & supported, events)
                registered.add(uuid)
            except pynvml.NVMLError as fault:
                if fault.value == _NOT_SUPPORTED:
                    registered.add(uuid)  # this one never will
                error = int(fault.value)
        registered.intersection_update(wanted)  # a GPU that comes back is registered anew
        self.error = error

    @staticmethod
    def _heard(event: Any) -> Heard:
        uuid = pynvml.nvmlDeviceGetUUID(event.device)
        if event.eventType != _XID:
            return Heard(uuid=uuid)
        instance = int(event.gpuInstanceId)
        return Heard(uuid, int(event.eventData), None if instance == _NO_INSTANCE else instance)
