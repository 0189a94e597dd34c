"""Pods of processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.api.telemetry import Process
from extender.telemetry.agent.pods import pod_of_cgroup, with_pods

UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


@pytest.mark.parametrize(
    ("text", "uid"),
    [
        (f"0::/kubepods/burstable/pod{UID}/cri-containerd-abc", UID),
        (f"0::/kubepods.slice/kubepods-besteffort-pod{UID.replace('-', '_')}.slice/x.scope", UID),
        ("0::/kubepods/pod" + UID.replace("-", "") + "/x", UID.replace("-", "")),  # static pods
        ("0::/system.slice/sshd.service", ""),
        ("0::/podman/podabc", ""),
    ],
)
def test_the_pod_is_in_the_cgroup(text: str, uid: str) -> None:
    assert pod_of_cgroup(text) == uid


def test_a_process_that_is_gone_has_no_pod(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(f"0::/kubepods/pod{UID}/c\n")
    named = with_pods([Process(7, 1), Process(8, None)], tmp_path)
    assert named == (Process(7, 1, UID), Process(8, None, ""))
