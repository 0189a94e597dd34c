from __future__ import annotations

import pytest

from extender.kube.client import ApiClient
from extender.kube.leader_label import LEADER_LABEL, LeaderLabel
from extender.model.errors import KubeError
from tests.kube.scripted_api import ScriptedApi, answer, refuse

PODS = "/api/v1/namespaces/berth-system/pods"


def label(client: ApiClient) -> LeaderLabel:
    return LeaderLabel(
        client, namespace="berth-system", selector="app.kubernetes.io/name=berth", own_pod="own"
    )


def labelled(*names: str) -> dict[str, object]:
    return {"metadata": {}, "items": [{"metadata": {"name": name, "uid": f"u-{name}"}} for name in names]}


async def test_others_lose_the_label_before_our_pod_gets_it(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, answer(200, labelled("old", "own")))
    api.on("PATCH", f"{PODS}/old", answer(200, {}))
    api.on("PATCH", f"{PODS}/own", answer(200, {}))
    assert await label(client).take(lambda: True)
    assert api.requests[0].query["labelSelector"] == f"app.kubernetes.io/name=berth,{LEADER_LABEL}"
    patches = [(r.path, r.json["metadata"]) for r in api.requests[1:]]
    assert patches == [
        (f"{PODS}/old", {"uid": "u-old", "labels": {LEADER_LABEL: None}}),
        (f"{PODS}/own", {"labels": {LEADER_LABEL: "true"}}),
    ]


async def test_a_pod_that_is_gone_is_no_obstacle(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, answer(200, labelled("gone", "renewed")))
    api.on("PATCH", f"{PODS}/renewed", refuse(409, "Conflict"))
    api.on("PATCH", f"{PODS}/own", answer(200, {}))
    assert await label(client).take(lambda: True)


async def test_nothing_is_written_once_the_lease_is_lost(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, answer(200, labelled("old")))
    assert not await label(client).take(lambda: False)
    api.on("GET", PODS, answer(200, labelled()))
    assert not await label(client).take(lambda: False)
    assert {r.method for r in api.requests} == {"GET"}


async def test_our_pod_stays_unlabelled_while_another_may_still_have_it(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("GET", PODS, answer(200, labelled("old")))
    api.on("PATCH", f"{PODS}/old", refuse(500))
    with pytest.raises(KubeError):
        await label(client).take(lambda: True)
    assert api.seen("PATCH", f"{PODS}/own") == []


async def test_a_dropped_label_is_taken_off_our_pod_only_while_the_lease_is_ours(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("PATCH", f"{PODS}/own", answer(200, {}))
    await label(client).drop(lambda: False)
    assert api.requests == []
    await label(client).drop(lambda: True)
    assert [r.json for r in api.requests] == [{"metadata": {"labels": {LEADER_LABEL: None}}}]
