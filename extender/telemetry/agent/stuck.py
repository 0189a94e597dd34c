"""The mark of a reader that would not die, so that a restarted agent does not start a second one.

A process in uninterruptible sleep outlives the agent. It is the same one as long as pid and start time agree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

_FILE: Final = "stuck-reader.json"
_START_FIELD: Final = 19  # of /proc/PID/stat behind the name: field 22, starttime


class _Mark(msgspec.Struct, frozen=True):
    pid: int
    start: int


class StuckMark:
    """Kept in a folder that survives the agent; without one, nothing is kept."""

    def __init__(self, folder: Path | None, proc_root: Path) -> None:
        self._file = folder / _FILE if folder else None
        self._proc = proc_root

    def set(self, pid: int) -> None:
        """This reader is stuck."""
        start = self._start_of(pid)
        if self._file is not None and start is not None:
            self._file.write_bytes(msgspec.json.encode(_Mark(pid, start)))

    def clear(self) -> None:
        """It went after all."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def still_there(self) -> int | None:
        """The pid of a marked reader that is still there; a mark of one that is gone is cleared."""
        if self._file is None:
            return None
        try:
            mark = msgspec.json.decode(self._file.read_bytes(), type=_Mark)
        except (OSError, msgspec.DecodeError):
            return None
        if self._start_of(mark.pid) == mark.start:
            return mark.pid
        self.clear()
        return None

    def _start_of(self, pid: int) -> int | None:
        try:
            text = (self._proc / str(pid) / "stat").read_text()
            return int(text.rpartition(")")[2].split()[_START_FIELD])
        except (OSError, ValueError, IndexError):
            return None
