"""The made-up fleet is what it says it is, and its pods find their claims in it."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.fleet import ledger
from extender.inventory.ledger import Ledger
from extender.sim.generated import PENDING, PLUGIN_RESOURCE, POD_KINDS, asking, fleet
from tests.verbs.counted import device_states

NODES = 220


def ledger_of(nodes: int) -> Ledger:
    book = Ledger(ignored_drivers=())
    for kind, objects in fleet(nodes).items():
        book.replaced(kind, objects, ())
    return book


def test_half_of_the_devices_are_taken_and_every_tenth_node_is_full() -> None:
    snapshot = ledger(100).snapshot()
    assert Counter((driver, state) for driver, _, state in device_states(snapshot)) == {
        ("gpu.nvidia.com", "taken"): 90 * 4 + 10 * 8,
        ("gpu.nvidia.com", "free"): 90 * 4,
    }


def test_every_eleventh_node_has_a_device_plugin_instead_of_slices() -> None:
    objects = fleet(NODES)
    plugged = {n.metadata.name for n in objects["Node"] if PLUGIN_RESOURCE in (n.status.allocatable or {})}
    published = {s.spec.node_name for s in objects["ResourceSlice"]}
    assert len(plugged) == NODES // 11
    assert plugged | published == {n.metadata.name for n in objects["Node"]}
    assert not plugged & published
    assert {pod.spec.node_name for pod in objects["Pod"]} == plugged


def test_there_are_as_many_models_as_kinds() -> None:
    models = {s.spec.devices[0].attributes["productName"].string for s in fleet(NODES)["ResourceSlice"]}
    assert len(models) == 20


@pytest.mark.parametrize("kind", POD_KINDS, ids=lambda kind: kind.name)
def test_every_pod_that_asks_finds_its_claim_pending(kind: object) -> None:
    snapshot = ledger_of(30).snapshot()
    [asked] = [one for one in POD_KINDS if one is kind]
    for number in (0, 7, PENDING, PENDING + 1):
        pod = asking(asked, number)
        names = [entry.resource_claim_name or "" for entry in pod.spec.resource_claims or ()]
        assert len(names) == bool(asked.count)
        for name in names:
            claim = snapshot.claim("default", name)
            assert claim is not None
            assert claim.status.allocation is None
            assert (claim.spec.devices.requests or [])[0].exactly.count == asked.count  # type: ignore[union-attr]  # asserted below
        assert bool(asked.plugin) == (PLUGIN_RESOURCE in str(pod.spec.containers))


def test_a_bench_has_neither_pending_claims_nor_device_plugins() -> None:
    assert ledger(22, pods=3).counts()["ResourceClaim"] == 22
    assert ledger(22, pods=3).counts()["ResourceSlice"] == 22
    assert ledger(22, pods=3).counts()["Pod"] == 3
