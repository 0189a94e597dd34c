"""The read API shows what the desk shows."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest


def get(client: httpx.Client, path: str, **params: Any) -> Any:
    answer = client.get(f"/api/v1/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_fleet_has_totals_and_nodes_with_devices_and_plugin_resources(client: httpx.Client) -> None:
    fleet = get(client, "fleet")
    gpus = {
        "driver": "gpu.example.com",
        "product": "H200",
        "total": 8,
        "free": 5,
        "taken": 2,
        "unavailable": 1,
    }
    assert (fleet["generation"], fleet["nodeCount"], fleet["totals"], fleet["next"]) == (7, 5, [gpus], "")
    assert fleet["nodes"][2] == {
        "name": "node-2",
        "ready": False,
        "schedulable": True,
        "devices": [gpus],
        "resources": [{"name": "nvidia.com/gpu", "allocatable": 8, "requested": 3}],
        "telemetry": [],
    }
    assert fleet["nodes"][0]["telemetry"] == [
        {
            "device": "gpu.example.com/node-0/gpu-0",
            "uuid": "GPU-0",
            "state": "fresh",
            "age": 3.0,
            "utilisation": 97,
            "memoryUsed": 64 << 30,
            "memoryTotal": 141 << 30,
            "temperature": 71,
            "health": ["DeviceUnhealthy"],
            "text": "XID 79 (restartNode)",
            "holders": ["team/pod-a"],
        }
    ]


def test_the_fleet_comes_in_pages(client: httpx.Client) -> None:
    names, after = [], ""
    while True:
        page = get(client, "fleet", after=after, limit=2)
        names.append([node["name"] for node in page["nodes"]])
        if not (after := page["next"]):
            break
    assert names == [["node-0", "node-1"], ["node-2", "node-3"], ["node-4"]]


def test_a_node_shows_its_devices_with_holders_attributes_and_taints(client: httpx.Client) -> None:
    [device] = get(client, "nodes/node-0")["devices"]
    assert device["holders"] == [
        {"namespace": "team", "claim": "claim", "pods": ["pod-a"], "shared": False, "admin": False}
    ]
    assert device["attributes"] == {"index": 0, "nvlink": True, "productName": "H200"}
    assert device["taints"][0]["value"] == "xid-79"
    assert device["telemetry"]["utilisation"] == 97


def test_an_unknown_node_is_a_404_that_names_it(client: httpx.Client) -> None:
    answer = client.get("/api/v1/nodes/node-9")
    assert (answer.status_code, answer.json()) == (404, {"error": "node 'node-9' not found"})


def test_decisions_are_limited_and_filtered(client: httpx.Client) -> None:
    assert len(get(client, "decisions", limit=2)["decisions"]) == 2
    [decision] = get(client, "decisions", pod="pod-1")["decisions"]
    assert (decision["podUid"], decision["rejected"], decision["outcome"]) == (
        "uid-1",
        {"DeviceLost": 2},
        "pending",
    )


def test_gangs_show_their_members(client: httpx.Client) -> None:
    [gang] = get(client, "gangs")["gangs"]
    assert (gang["minMembers"], gang["members"][0]["node"]) == (4, "node-1")


def test_a_pod_document_is_explained(client: httpx.Client) -> None:
    answer = client.post("/api/v1/explain", json={"pod": {"spec": {}}}).json()
    assert (answer["workloadClass"], answer["candidates"], answer["rejected"]) == (
        "training",
        2,
        {"DeviceLost": 1},
    )
    assert answer["nodes"][0]["predicted"] == [
        {"claim": "gpus", "request": "gpu", "device": "gpu.example.com/node-0/gpu-0"}
    ]
    assert answer["nodes"][0]["judges"] == [
        {"judge": "pack", "weight": 2.0, "score": 0.5, "evidence": "3 of 8 taken"}
    ]
    assert (answer["nodes"][1]["reason"], answer["nodes"][1]["score"]) == ("DeviceLost", None)


def test_an_existing_pod_is_explained_by_name(client: httpx.Client) -> None:
    answer = client.post("/api/v1/explain", json={"namespace": "team", "name": "pod", "nodes": ["node-1"]})
    assert [node["name"] for node in answer.json()["nodes"]] == ["node-1"]


def test_a_pod_that_does_not_exist_is_a_404_that_names_it(client: httpx.Client) -> None:
    answer = client.post("/api/v1/explain", json={"name": "nobody"})
    assert (answer.status_code, answer.json()) == (404, {"error": "pod default/nobody not found"})


def test_a_document_that_is_no_pod_names_the_field(client: httpx.Client) -> None:
    answer = client.post("/api/v1/explain", json={"pod": {"kind": "Node"}})
    assert (answer.status_code, answer.json()) == (422, {"error": "pod.spec: is missing"})


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "query.limit"),
        ({"limit": "many"}, "query.limit"),
        ({"after": "x" * 300}, "query.after"),
    ],
)
def test_a_bad_query_names_the_field(client: httpx.Client, query: dict[str, str], field: str) -> None:
    answer = client.get("/api/v1/fleet", params=query)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["fields"]] == [field]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"pod": {}} {"pod": {}}',
        b'{"pod": 3}',
        b'{"pod": {}, "name": "both"}',
        b"{}",
        b'{"name": "x", "color": 1}',
        b'{"name": "x", "limit": 1e9}',
        b'{"name": "\xff\xfe"}',
        b'{"name": "\\ud800"}',
        b'{"name": ' + b'"x' * 30_000,
        b'{"pod": ' + b'{"a":' * 10_000,
        b'{"pod": ' + b"[" * 40_000 + b"]" * 40_000 + b"}",
        b'{"name": "x", "limit": NaN}',
    ],
)
def test_an_unreadable_body_is_a_422_without_a_traceback(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/api/v1/explain", content=body)
    assert answer.status_code == 422
    assert answer.json()["error"] == "the request can't be read"
    assert answer.json()["fields"]
    assert "Traceback" not in answer.text
    assert "extender/" not in answer.text


def test_what_was_sent_is_not_sent_back(client: httpx.Client) -> None:
    body = json.dumps({"name": "x", "surprise": "hush-hush"})
    assert "hush-hush" not in client.post("/api/v1/explain", content=body).text
