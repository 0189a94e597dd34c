"""Which pod a process belongs to, from its cgroup.

Both spellings: `/kubepods/burstable/pod<uid>/...` and `kubepods-burstable-pod<uid with _>.slice`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from extender.api.telemetry import Process

_POD: Final = re.compile(r"pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})\b")


def pod_of_cgroup(text: str) -> str:
    """The pod's UID in the text of /proc/PID/cgroup; empty for a process that is in no pod."""
    found = _POD.search(text)
    return found[1].replace("_", "-") if found else ""


def with_pods(processes: Iterable[Process], proc_root: Path) -> tuple[Process, ...]:
    """The same processes with their pods; one that has ended or can't be read has none."""
    return tuple(replace(p, pod_uid=_pod_of(p.pid, proc_root)) for p in processes)


def _pod_of(pid: int, proc_root: Path) -> str:
    try:
        return pod_of_cgroup((proc_root / str(pid) / "cgroup").read_text())
    except OSError:
        return ""
