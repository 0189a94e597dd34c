"""The load test's fleet and pods are what Berth's own readers take."""

from __future__ import annotations

from pathlib import Path

import msgspec

from extender.api.core import Pod
from extender.sim import manifests
from loadtest import fleet


def test_nothing_of_the_fleet_is_skipped(tmp_path: Path) -> None:
    fleet.write(tmp_path / "fleet.yaml", 40)
    read = manifests.load(tmp_path / "fleet.yaml")
    assert read.skipped == []
    assert len(read.objects["Node"]) == 40
    assert len(read.objects["ResourceSlice"]) == 36
    assert {len(each.spec.devices) for each in read.objects["ResourceSlice"]} == {fleet.DEVICES}


def test_half_of_the_devices_of_every_second_dra_node_are_taken(tmp_path: Path) -> None:
    fleet.write(tmp_path / "fleet.yaml", 40)
    claims = manifests.load(tmp_path / "fleet.yaml").objects["ResourceClaim"]
    taken = [each for each in claims if each.status is not None and each.status.allocation is not None]
    assert len(taken) == 20
    assert {len(each.status.allocation.devices.results) for each in taken} == {4}


def test_every_pod_reads_as_one_and_its_claim_is_in_the_fleet(tmp_path: Path) -> None:
    fleet.write(tmp_path / "fleet.yaml", 10)
    claims = {each.metadata.name for each in manifests.load(tmp_path / "fleet.yaml").objects["ResourceClaim"]}
    for kind in fleet.KINDS:
        pod = msgspec.convert(fleet.pod(kind, fleet.CLAIMS + 1), Pod)
        asked = [each.resource_claim_name for each in pod.spec.resource_claims or ()]
        assert set(asked) <= claims
        assert bool(asked) == bool(kind.count)
