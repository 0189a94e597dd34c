from __future__ import annotations

from typing import Any

from extender.kube.client import ApiClient
from extender.kube.taintrules import (
    MANAGED_BY_LABEL,
    QUARANTINE_ANNOTATION,
    Outcome,
    TaintRuleWriter,
    rule_name,
)
from extender.model.device import DeviceID
from tests.kube.scripted_api import ScriptedApi, answer, refuse

RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
GPU = DeviceID("gpu.nvidia.com", "node-1", "gpu-0")
NAME = rule_name(GPU, "berth.scheduler/sick")


def rule(name: str = NAME, *, ours: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "uid": "u1", "resourceVersion": "7"}
    metadata["labels"] = {MANAGED_BY_LABEL: "berth"}
    if ours:
        metadata["annotations"] = {QUARANTINE_ANNOTATION: str(GPU)}
    return {"metadata": metadata, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}}


def writer(client: ApiClient, *, leads: bool = True) -> TaintRuleWriter:
    return TaintRuleWriter(client, "v1beta2", lambda: leads)


async def taint(client: ApiClient, *, leads: bool = True) -> Outcome:
    made = writer(client, leads=leads)
    return await made.taint(GPU, key="berth.scheduler/sick", value="xid-79", effect="NoSchedule")


async def test_a_rule_names_exactly_one_device_and_its_maker(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", RULES, answer(201, {}))
    assert await taint(client) is Outcome.DONE
    body = api.requests[0].json
    assert body["apiVersion"] == "resource.k8s.io/v1beta2"
    assert body["metadata"]["labels"] == {MANAGED_BY_LABEL: "berth"}
    assert body["metadata"]["annotations"] == {QUARANTINE_ANNOTATION: "gpu.nvidia.com/node-1/gpu-0"}
    assert body["spec"]["deviceSelector"] == {"driver": "gpu.nvidia.com", "pool": "node-1", "device": "gpu-0"}


async def test_tainting_twice_is_fine_and_a_foreign_rule_stays(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", RULES, refuse(409, "AlreadyExists"))
    api.on("GET", f"{RULES}/{NAME}", answer(200, rule()), answer(200, rule(ours=False)))
    assert await taint(client) is Outcome.ALREADY
    assert await taint(client) is Outcome.FOREIGN


async def test_nothing_is_written_once_the_lease_is_lost(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", f"{RULES}/{NAME}", answer(200, rule()))
    assert await taint(client, leads=False) is Outcome.LEASE_LOST
    assert await writer(client, leads=False).clear(NAME) is Outcome.LEASE_LOST
    assert {r.method for r in api.requests} == {"GET"}


async def test_our_rule_is_deleted_as_we_saw_it(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", f"{RULES}/{NAME}", answer(200, rule()))
    api.on("DELETE", f"{RULES}/{NAME}", answer(200, {}))
    assert await writer(client).clear(NAME) is Outcome.DONE
    assert api.requests[1].json["preconditions"] == {"uid": "u1", "resourceVersion": "7"}


async def test_a_foreign_rule_is_never_deleted(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", f"{RULES}/{NAME}", answer(200, rule(ours=False)))
    assert await writer(client).clear(NAME) is Outcome.FOREIGN
    assert await writer(client).clear("absent") is Outcome.ALREADY
    assert api.seen("DELETE", f"{RULES}/{NAME}") == []


async def test_only_our_rules_are_listed_as_ours(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", RULES, answer(200, {"metadata": {}, "items": [rule("a"), rule("b", ours=False)]}))
    assert [each.metadata.name for each in await writer(client).ours()] == ["a"]
    assert api.requests[0].query["labelSelector"] == f"{MANAGED_BY_LABEL}=berth"


def test_rule_names_are_stable_and_differ_by_device_and_key() -> None:
    assert rule_name(GPU, "k") == rule_name(GPU, "k")
    assert len({rule_name(GPU, "k"), rule_name(GPU, "l"), rule_name(GPU._replace(device="gpu-1"), "k")}) == 3
