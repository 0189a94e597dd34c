from __future__ import annotations

from typing import Any

import pytest

from extender.kube.client import ApiClient
from extender.kube.quarantine import TAINT_KEY, DeviceQuarantine
from extender.kube.taintrules import MANAGED_BY_LABEL, QUARANTINE_ANNOTATION, rule_name
from extender.model.device import DeviceID
from extender.model.errors import KubeError
from tests.kube.scripted_api import ScriptedApi, answer, refuse

GPU = DeviceID("gpu.nvidia.com", "node-1", "gpu-0")
NAME = rule_name(GPU, TAINT_KEY)
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"


def rule(*, ours: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": NAME, "uid": "u1", "resourceVersion": "7"}
    metadata["labels"] = {MANAGED_BY_LABEL: "berth"}
    if ours:
        metadata["annotations"] = {QUARANTINE_ANNOTATION: str(GPU)}
    selector = {"driver": GPU.driver, "pool": GPU.pool, "device": GPU.device}
    return {
        "metadata": metadata,
        "spec": {"deviceSelector": selector, "taint": {"key": TAINT_KEY, "effect": "NoSchedule"}},
    }


def quarantine(client: ApiClient, *, leads: bool = True, version: str = "v1beta2") -> DeviceQuarantine:
    served = {"DeviceTaintRule": version} if version else {}
    return DeviceQuarantine(client, lambda: served, lambda: leads)


async def test_our_rules_are_found_by_device_and_strangers_are_not(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("GET", RULES, answer(200, {"items": [rule(), rule(ours=False)], "metadata": {}}))
    assert await quarantine(client).ours() == {GPU: NAME}


@pytest.mark.parametrize(
    "selector", [None, {}, {"driver": GPU.driver}, {"driver": GPU.driver, "pool": "node-1"}]
)
async def test_a_rule_that_names_no_single_device_is_about_none(
    api: ScriptedApi, client: ApiClient, selector: dict[str, str] | None
) -> None:
    wide = rule()
    wide["spec"]["deviceSelector"] = selector
    api.on("GET", RULES, answer(200, {"items": [wide], "metadata": {}}))
    assert await quarantine(client).ours() == {}


async def test_a_device_is_tainted_in_the_version_that_is_served(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", "/apis/resource.k8s.io/v1/devicetaintrules", answer(201, {}))
    assert await quarantine(client, version="v1").taint(GPU, "DeviceLost") == NAME


async def test_nothing_is_written_without_the_lease(client: ApiClient) -> None:
    assert await quarantine(client, leads=False).taint(GPU, "DeviceLost") is None


async def test_a_strangers_rule_of_that_name_is_left_alone(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", RULES, refuse(409, "AlreadyExists"))
    api.on("GET", f"{RULES}/{NAME}", answer(200, rule(ours=False)))
    assert await quarantine(client).taint(GPU, "DeviceLost") is None


async def test_where_rules_are_not_served_the_fault_says_so(client: ApiClient) -> None:
    with pytest.raises(KubeError, match="does not serve DeviceTaintRule"):
        await quarantine(client, version="").ours()
