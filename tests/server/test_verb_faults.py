"""Faults of the verbs: an answer of the verb's kind that names the field, never a traceback."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import structlog

from tests.inventory.objects import claim, result
from tests.server.service import BODY_LIMIT, GPU_POD, Broken, Service, args, empty, post, wire_pod

NAMES = ["n0", "n1", "n2", "n4"]


def meta(**nodes: list[str]) -> dict[str, Any]:
    return {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 1} for name, uids in nodes.items()
    }


def binding() -> dict[str, str]:
    return {"PodName": "q", "PodNamespace": "ns", "PodUID": "uid-q", "Node": "n1"}


SCRAP: dict[str, tuple[bytes, str]] = {
    "an empty body": (b"", "the body is empty"),
    "cut short": (b'{"Pod": {"metadata"', "not one JSON document"),
    "two documents": (b"{} {}", "not one JSON document"),
    "an array": (b"[]", "JSON array"),
    "a null": (b"null", "JSON null"),
    "a number": (b"7", "JSON number"),
    "not UTF-8": (b'{"Pod": {"metadata": {"name": "\xff\xfe"}}}', "not UTF-8: invalid start byte at byte 3"),
    "nested deeply": (b'{"Pod":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    "NaN": (b'{"Pod": NaN}', "not one JSON document"),
    "a pod of the wrong type": (b'{"Pod": "me", "NodeNames": []}', "Pod"),
    "a deep field of the wrong type": (
        b'{"Pod": {"spec": {"containers": [{"resources": {"requests": {"cpu": []}}}]}}, "NodeNames": []}',
        "spec.containers[0].resources.requests",
    ),
    "no pod": (b'{"NodeNames": ["n1"], "NodeNameToMetaVictims": {}}', "Pod is missing"),
    "a long string for a number": (
        b'{"Pod": {"spec": {"priority": "' + b"x" * 900_000 + b'"}}, "NodeNames": []}',
        "spec.priority",
    ),
}


@pytest.mark.parametrize("kind", SCRAP)
def test_a_body_that_can_not_be_read_gets_an_answer_of_the_verbs_kind(
    service: Service, caller: httpx.Client, kind: str
) -> None:
    body, words = SCRAP[kind]
    with structlog.testing.capture_logs():
        answers = {
            verb: caller.post(f"/extender/{verb}", content=body)
            for verb in ("filter", "prioritize", "preempt")
        }
    assert answers["filter"].status_code == 200
    reply = answers["filter"].json()
    assert words in reply["Error"]
    assert reply["Error"].startswith("filter: ")
    assert len(reply["Error"]) < 300
    assert (answers["prioritize"].status_code, answers["prioritize"].json()) == (200, [])
    assert answers["preempt"].status_code == 400
    assert answers["preempt"].text.startswith("preempt: ")
    assert not any("Traceback" in answer.text for answer in answers.values())
    assert service.count("berth_verb_faults_total", verb="filter", fault="request") == 1


@pytest.mark.parametrize("kind", ["an empty body", "two documents", "not UTF-8", "an array"])
def test_a_binding_that_can_not_be_read_is_200_with_error(caller: httpx.Client, kind: str) -> None:
    body, words = SCRAP[kind]
    answer = caller.post("/extender/bind", content=body.replace(b"Pod", b"PodName"))
    assert answer.status_code == 200
    assert words in answer.json()["Error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"Pod": GPU_POD, "NodeNames": ["n1", 7]}, "NodeNames[1]"),
        ({"Pod": GPU_POD, "NodeNames": "n1"}, "NodeNames"),
        (
            {"Pod": GPU_POD, "Nodes": {"items": [{"metadata": {"name": "n1"}}, {"metadata": {}}]}},
            "Nodes.items[1]",
        ),
        ({"Pod": GPU_POD, "Nodes": {"items": [{"metadata": {"name": 5}}]}}, "metadata.name"),
    ],
)
def test_the_error_names_the_field(caller: httpx.Client, body: dict[str, Any], words: str) -> None:
    assert words in post(caller, "filter", body)["Error"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"containers": [{"resources": {"requests": {"cpu": "zz"}}}]},
            "spec.containers[0].resources.requests[cpu]",
        ),
        (
            {"containers": [{}, {"resources": {"limits": {"x/gpu": ""}}}]},
            "spec.containers[1].resources.limits[x/gpu]",
        ),
        (
            {"initContainers": [{"resources": {"requests": {"cpu": "Infinity"}}}]},
            "spec.initContainers[0].resources.requests[cpu]",
        ),
        ({"overhead": {"memory": "1GB"}}, "spec.overhead[memory]"),
        ({"resources": {"requests": {"cpu": "9" * 1_000_000}}}, "spec.resources.requests[cpu]"),
    ],
)
def test_an_amount_that_is_no_quantity_is_named(
    service: Service, caller: httpx.Client, spec: dict[str, Any], field: str
) -> None:
    asked = args(wire_pod(claims=["free"]), NAMES)
    asked["Pod"]["spec"] |= {"containers": [{}], **spec}
    asked["NodeNameToMetaVictims"] = meta(n1=["v"])
    with structlog.testing.capture_logs():
        said = post(caller, "filter", asked)["Error"]
        assert post(caller, "prioritize", asked) == []
        refused = caller.post("/extender/preempt", json=asked)
    assert said.startswith(f"filter: {field}: ")
    assert (refused.status_code, refused.text.split(": ")[:2]) == (400, ["preempt", field])
    assert service.count("berth_verb_faults_total", verb="filter", fault="request") == 1


def test_a_megabyte_of_a_name_is_just_an_unknown_node(caller: httpx.Client) -> None:
    long = "n" * (BODY_LIMIT - 10_000)
    assert post(caller, "filter", args(GPU_POD, ["n1", long]))["NodeNames"] == ["n1", long]


def test_a_body_beyond_the_limit_is_answered_in_the_verbs_own_form(caller: httpx.Client) -> None:
    body = b" " * (BODY_LIMIT + 1)
    answer = caller.post("/extender/filter", content=body)
    assert answer.headers["connection"] == "close"  # what is left of the body is not read
    assert (answer.status_code, answer.json()["Error"]) == (
        200,
        f"filter: body: larger than {BODY_LIMIT} bytes",
    )
    assert caller.post("/extender/prioritize", content=body).json() == []
    assert caller.post("/extender/bind", content=body).json()["Error"] != ""
    assert caller.post("/extender/preempt", content=body).status_code == 400


def test_a_fault_of_ours_is_an_answer_without_a_traceback(service: Service, caller: httpx.Client) -> None:
    service.desk.vetoes = [Broken()]
    with structlog.testing.capture_logs():
        reply = post(caller, "filter", args(GPU_POD, NAMES))
        victims = {"Pod": GPU_POD, "NodeNameToMetaVictims": meta(n1=["u"])}
        preempted = caller.post("/extender/preempt", json=victims)
    assert reply == empty(Error="filter: internal fault: ZeroDivisionError")
    assert (preempted.status_code, preempted.text) == (400, "preempt: internal fault: ZeroDivisionError")
    assert service.count("berth_verb_faults_total", verb="filter", fault="internal") == 1
    service.desk.vetoes = []
    assert post(caller, "filter", args(GPU_POD, NAMES))["NodeNames"] == NAMES


def test_a9_a_replica_that_may_not_answer_says_so_and_closes(service: Service, caller: httpx.Client) -> None:
    service.standing.why = "this replica does not hold the Lease"
    answers = {
        verb: caller.post(f"/extender/{verb}", json=args(GPU_POD, NAMES) | binding())
        for verb in ("filter", "prioritize", "bind", "preempt")
    }
    assert {answer.headers["connection"] for answer in answers.values()} == {"close"}
    assert answers["filter"].json() == empty(Error=service.standing.why)
    assert answers["prioritize"].json() == []
    assert answers["bind"].json() == {"Error": service.standing.why}
    assert (answers["preempt"].status_code, answers["preempt"].text) == (400, service.standing.why)
    assert service.api.posted == []
    assert len(service.ledger.in_flight) == 0
    for verb in answers:
        assert service.count("berth_verb_faults_total", verb=verb, fault="unsynced") == 1
        assert service.count("berth_verb_duration_seconds_count", verb=verb) == 1
    service.standing.why = ""
    answer = caller.post("/extender/filter", json=args(GPU_POD, NAMES))
    assert "connection" not in answer.headers
    assert answer.json()["NodeNames"] == NAMES


def test_a14_a_filter_reply_reserves_nothing(service: Service, caller: httpx.Client) -> None:
    """Twenty pods ask for the last device; each is told the truth of now, and nobody starves."""
    service.ledger.upserted(
        "ResourceClaim", claim("more", [result(f"n{i}", d) for i in range(3) for d in "ab"][2:])
    )
    for number in range(20):
        reply = post(caller, "filter", args(wire_pod(f"q{number}", claims=["free"]), ["n0"]))
        assert reply["NodeNames"] == ["n0"]
