"""The reader process: `python -m extender.telemetry.agent.reader PROGRESS_FD WAIT_MS SYSFS`.

Frames come in on stdin and go out on stdout (`frames`). It ends at the end of stdin, after a fault of the
whole driver, or by a signal. Everything here may hang for ever: that is why it is a process of its own.
Never: timers, retries, network.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import BinaryIO

import msgspec

from extender.telemetry.agent.events import EventThread
from extender.telemetry.agent.frames import Answer, Ask, Fault, Word, pack, read_body
from extender.telemetry.agent.nvml import GlobalFault, Library
from extender.telemetry.agent.progress import Progress

_REGISTRATION_PATIENCE_S = 1.0


class _Outlet:
    """Whole frames to stdout from two threads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, word: Word) -> None:
        """Write one frame; a parent that is gone is no fault of ours."""
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._stream.write(pack(word))
            self._stream.flush()


def serve(requests: BinaryIO, replies: BinaryIO, progress: Progress, wait_ms: int, sysfs: Path) -> int:
    """Answer until `requests` ends (0) or the driver is gone (1)."""
    outlet = _Outlet(replies)
    events = EventThread(wait_ms, outlet.send)
    decoder = msgspec.msgpack.Decoder(Ask)
    started = False
    try:
        library = Library(progress, sysfs)
        while (body := read_body(requests)) is not None:
            ask = decoder.decode(body)
            devices = library.read(processes=ask.processes)
            progress.mark("nvmlDeviceRegisterEvents")
            if started:
                events.watch(library.handles())
            else:  # registered before the first answer: what comes after it is heard
                events.start(library.handles(), _REGISTRATION_PATIENCE_S)
                started = True
            progress.mark("")
            outlet.send(
                Answer(ask.number, library.driver_version, library.nvml_version, devices, events.error)
            )
    except GlobalFault as fault:
        outlet.send(Fault(fault.state, fault.code, fault.operation))
        return 1
    if not started or events.stop():
        library.close()
    return 0


def main() -> None:
    """Read the arguments, serve, and leave without waiting for threads that may hang."""
    descriptor, wait_ms, sysfs = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    code = serve(sys.stdin.buffer, sys.stdout.buffer, Progress(descriptor), wait_ms, sysfs)
    sys.stdout.flush()
    os._exit(code)  # the interpreter's own end would join the event thread's call


if __name__ == "__main__":
    main()
