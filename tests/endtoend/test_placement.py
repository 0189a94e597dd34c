"""Placement by a stock kube-scheduler that asks Berth, under the deployed rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.endtoend.fleet import Fleet
    from tests.endtoend.replica import Replica

pytestmark = pytest.mark.controlplane


def test_claims_in_nvidia_style_are_bound(fleet: Fleet, leader: Replica) -> None:
    fleet.template("one")
    names = fleet.create(fleet.pod(f"p-{n}", templates=["one"]) for n in range(5))
    pods = fleet.wait_bound(names)
    assert all(pods[name]["spec"]["nodeName"].startswith("gpu-") for name in names)
    assert leader.process is not None
