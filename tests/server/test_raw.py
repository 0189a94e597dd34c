"""The way of the hot paths around the app: same manners, fewer layers."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import msgspec
import pytest

from tests.server.service import GPU_POD, Service, args


def pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 7):
        yield body[start : start + 7]


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
def test_a_get_of_a_verb_is_a_405_in_json_that_names_post(caller: httpx.Client, verb: str) -> None:
    answer = caller.get(f"/extender/{verb}")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json() == {"error": f"Method Not Allowed: GET /extender/{verb}"}


@pytest.mark.parametrize("path", ["/extender/filter/", "/extender", "/extender/score"])
def test_a_post_beside_the_verbs_is_a_404_in_json(caller: httpx.Client, path: str) -> None:
    answer = caller.post(path, content=b"{}")
    assert (answer.status_code, answer.json()) == (404, {"error": f"Not Found: POST {path}"})


def test_a_body_in_pieces_is_read_whole(caller: httpx.Client) -> None:
    body = msgspec.json.encode(args(GPU_POD, ["n1", "n2"]))
    whole = caller.post("/extender/filter", content=body)
    assert caller.post("/extender/filter", content=pieces(body)).content == whole.content
    assert whole.json()["NodeNames"] == ["n1", "n2"]


def test_an_answer_says_its_length_and_type(caller: httpx.Client) -> None:
    answer = caller.post("/extender/prioritize", json=args(GPU_POD, ["n1"]))
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["content-type"] == "application/json"


def test_a_fault_of_preempt_is_plain_text(caller: httpx.Client) -> None:
    answer = caller.post("/extender/preempt", content=b"[]")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")


def test_a_client_that_hangs_up_in_its_body_is_no_decision_and_no_fault(
    service: Service, caller: httpx.Client
) -> None:
    head = b"POST /extender/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{"
    where = (caller.base_url.host, caller.base_url.port or 0)
    with socket.create_connection(where, timeout=20) as connection:
        connection.sendall(head)
    assert caller.post("/extender/filter", json=args(GPU_POD, ["n1"])).status_code == 200
    told = [sample for metric in service.registry.collect() for sample in metric.samples if sample.value]
    assert [sample for sample in told if sample.name == "berth_verb_faults_total"] == []
    (answered,) = [sample.value for sample in told if sample.name == "berth_decisions_total"]
    assert answered == 1
