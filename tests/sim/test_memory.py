"""The small API tells a sink what a watch would tell, and does the claim controller's part."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api.core import Pod, PodResourceClaim, PodSpec
from extender.api.meta import ObjectMeta
from extender.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
)
from extender.model.errors import Conflict, NotFound
from extender.sim.memory import MemoryApi
from tests.sim.sinks import Told

TEMPLATE = ResourceClaimTemplate(metadata=ObjectMeta(name="one", namespace="team"))
SHARED = ResourceClaim(metadata=ObjectMeta(name="shared", namespace="team"))
GRANT = AllocationResult(
    devices=DeviceAllocationResult(results=[DeviceRequestAllocationResult("gpu", "d", "pool", "gpu-0")])
)


def pod(name: str, *, template: str | None = None, claim: str | None = None, uid: str = "") -> Pod:
    entry = PodResourceClaim("gpu", resource_claim_name=claim, resource_claim_template_name=template)
    return Pod(
        metadata=ObjectMeta(name=name, namespace="team", uid=uid),
        spec=PodSpec(resource_claims=[entry] if template or claim else None),
    )


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def api(told: Told) -> MemoryApi:
    made = MemoryApi(told)
    made.load({"ResourceClaimTemplate": [TEMPLATE], "ResourceClaim": [SHARED]}, ["Pod", "ResourceClaim"])
    return made


def claim(api: MemoryApi, name: str) -> ResourceClaim:
    found = api.get("ResourceClaim", "team", name)
    assert isinstance(found, ResourceClaim)
    return found


def test_a_load_is_one_list_for_each_kind_that_is_watched(told: Told, api: MemoryApi) -> None:
    assert {kind: [obj.metadata.name for obj in objects] for kind, objects in told.lists.items()} == {
        "Pod": [],
        "ResourceClaim": ["shared"],
    }
    assert told.events == []
    assert claim(api, "shared").metadata.uid


def test_the_pods_of_a_load_have_their_claims_in_the_lists(told: Told) -> None:
    objects: dict[str, list[Any]] = {
        "Pod": [pod("a", template="one")],
        "ResourceClaimTemplate": [TEMPLATE],
    }
    MemoryApi(told).load(objects, ["Pod", "ResourceClaim"])
    [stored] = told.lists["Pod"]
    [status] = stored.status.resource_claim_statuses
    assert (status.name, status.resource_claim_name) == ("gpu", "a-gpu")
    assert [made.metadata.name for made in told.lists["ResourceClaim"]] == ["a-gpu"]


def test_a_pod_gets_a_claim_of_its_own_from_a_template(told: Told, api: MemoryApi) -> None:
    made = api.create("Pod", pod("a", template="one"))
    assert made.status.resource_claim_statuses[0].resource_claim_name == "a-gpu"
    [owner] = claim(api, "a-gpu").metadata.owner_references or []
    assert (owner.kind, owner.name, owner.uid) == ("Pod", "a", made.metadata.uid)
    assert told.events == [
        ("upserted", "Pod", "a"),
        ("upserted", "ResourceClaim", "a-gpu"),
        ("upserted", "Pod", "a"),
    ]


def test_every_write_has_a_newer_version(api: MemoryApi) -> None:
    made = api.create("Pod", pod("a", template="one"))
    assert int(made.metadata.resource_version) > int(claim(api, "a-gpu").metadata.resource_version) > 2


def test_without_the_template_the_pod_waits_without_a_claim(api: MemoryApi) -> None:
    made = api.create("Pod", pod("a", template="nowhere"))
    assert made.status.resource_claim_statuses is None


def test_a_claim_of_somebody_else_is_never_written_over(api: MemoryApi) -> None:
    api.create(
        "ResourceClaim", ResourceClaim(metadata=ObjectMeta(name="a-gpu", namespace="team", uid="theirs"))
    )
    made = api.create("Pod", pod("a", template="one"))
    assert claim(api, "a-gpu").metadata.uid == "theirs"
    assert made.status.resource_claim_statuses[0].resource_claim_name == "a-gpu-2"


def test_a_name_can_be_taken_once(api: MemoryApi) -> None:
    api.create("Pod", pod("a"))
    with pytest.raises(Conflict):
        api.create("Pod", pod("a"))


async def test_a_bind_may_be_repeated(told: Told, api: MemoryApi) -> None:
    uid = api.create("Pod", pod("a")).metadata.uid
    assert await api.bind("team", "a", uid, "n1") == ""
    events = len(told.events)
    assert await api.bind("team", "a", uid, "n1") == ""
    assert len(told.events) == events
    assert api.get("Pod", "team", "a").spec.node_name == "n1"


async def test_a_bound_pod_goes_nowhere_else(api: MemoryApi) -> None:
    uid = api.create("Pod", pod("a")).metadata.uid
    await api.bind("team", "a", uid, "n1")
    assert await api.bind("team", "a", uid, "n2") == "already bound to n1"
    assert api.get("Pod", "team", "a").spec.node_name == "n1"


async def test_a_new_pod_of_the_same_name_is_not_bound_for_the_old_one(api: MemoryApi) -> None:
    old = api.create("Pod", pod("a")).metadata.uid
    api.delete("Pod", "team", "a")
    new = api.create("Pod", pod("a")).metadata.uid
    assert new != old
    assert "another UID" in await api.bind("team", "a", old, "n1")
    assert api.get("Pod", "team", "a").spec.node_name == ""


async def test_a_pod_that_is_gone_is_not_bound(api: MemoryApi) -> None:
    assert "does not exist" in await api.bind("team", "a", "u", "n1")


def test_an_allocation_stays_and_each_pod_reserves_once(api: MemoryApi) -> None:
    first, second = (api.create("Pod", pod(name, claim="shared")) for name in ("a", "b"))
    other = AllocationResult(devices=DeviceAllocationResult(results=[]))
    api.allocate("team", "shared", GRANT, first)
    api.allocate("team", "shared", other, second)
    api.allocate("team", "shared", other, second)
    status = claim(api, "shared").status
    assert status.allocation == GRANT
    assert [consumer.name for consumer in status.reserved_for or ()] == ["a", "b"]


def test_a_deleted_pod_takes_its_own_claims_along(told: Told, api: MemoryApi) -> None:
    api.create("Pod", pod("a", template="one"))
    api.delete("Pod", "team", "a")
    assert told.events[-2:] == [("deleted", "Pod", "a"), ("deleted", "ResourceClaim", "a-gpu")]
    with pytest.raises(NotFound):
        claim(api, "a-gpu")


def test_the_last_pod_of_a_shared_claim_frees_its_devices(api: MemoryApi) -> None:
    for name in ("a", "b"):
        api.allocate("team", "shared", GRANT, api.create("Pod", pod(name, claim="shared")))
    api.delete("Pod", "team", "a")
    assert claim(api, "shared").status.allocation == GRANT
    api.delete("Pod", "team", "b")
    assert claim(api, "shared").status.allocation is None
    assert claim(api, "shared").status.reserved_for is None


def test_what_is_not_there_can_not_be_deleted(api: MemoryApi) -> None:
    with pytest.raises(NotFound, match="Pod team/a does not exist"):
        api.delete("Pod", "team", "a")
