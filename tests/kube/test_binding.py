from __future__ import annotations

from typing import Any

import pytest

from extender.kube.binding import Binder
from extender.kube.client import ApiClient
from tests.kube.scripted_api import ScriptedApi, answer, hang_up, refuse

POD = "/api/v1/namespaces/n/pods/p"
BINDING = f"{POD}/binding"


def pod(uid: str = "u1", node: str = "") -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "n", "uid": uid}, "spec": {"nodeName": node}}


async def test_a_binding_names_uid_and_node(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", BINDING, answer(201, {"kind": "Status"}))
    assert await Binder(client).bind("n", "p", "u1", "node-1") == ""
    body = api.requests[0].json
    assert body["metadata"] == {"name": "p", "namespace": "n", "uid": "u1"}
    assert body["target"]["name"] == "node-1"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (pod(node="node-1"), ""),
        (pod(node="node-2"), "bound to node-2 already"),
        (pod(uid="u2", node="node-1"), "the pod has UID u2"),
        (pod(), "being deleted"),
    ],
)
async def test_a_conflict_is_judged_by_the_pod_itself(
    api: ScriptedApi, client: ApiClient, found: dict[str, Any], said: str
) -> None:
    api.on("POST", BINDING, refuse(409, "Conflict", "pod p is being deleted"))
    api.on("GET", POD, answer(200, found))
    text = await Binder(client).bind("n", "p", "u1", "node-1")
    assert (text == "") if said == "" else (said in text)


async def test_a_lost_answer_is_a_success_when_the_pod_is_bound_as_asked(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("POST", BINDING, hang_up)
    api.on("GET", POD, answer(200, pod(node="node-1")))
    assert await Binder(client).bind("n", "p", "u1", "node-1") == ""


@pytest.mark.parametrize("status", [403, 404, 422])
async def test_a_refusal_is_told_as_it_came(api: ScriptedApi, client: ApiClient, status: int) -> None:
    api.on("POST", BINDING, refuse(status, "Because", "of that"))
    text = await Binder(client).bind("n", "p", "u1", "node-1")
    assert "of that" in text
    assert len(api.requests) == 1


async def test_a_pod_that_is_gone_is_an_error(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", BINDING, refuse(409, "Conflict"))
    assert "gone" in await Binder(client).bind("n", "p", "u1", "node-1")


async def test_an_unreachable_api_server_is_an_error_text(api: ScriptedApi, client: ApiClient) -> None:
    api.on("POST", BINDING, hang_up)
    api.on("GET", POD, hang_up)
    assert "no answer" in await Binder(client).bind("n", "p", "u1", "node-1")


async def test_a_bind_without_a_uid_is_never_sent(api: ScriptedApi, client: ApiClient) -> None:
    assert "PodUID" in await Binder(client).bind("n", "p", "", "node-1")
    assert api.requests == []
