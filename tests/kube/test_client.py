from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest
from kubernetes.aio.client import Configuration

from extender.kube.client import MERGE_PATCH, ApiClient
from extender.model.errors import Conflict, Gone, KubeError, NotFound
from tests.kube.scripted_api import ScriptedApi, answer, hang_up, never, refuse, watch

PODS = "/api/v1/pods"


async def test_get_returns_the_bytes_as_they_came(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, answer(200, b'{"a" :  1}'))
    assert await client.get(PODS, {"limit": 1}) == b'{"a" :  1}'
    assert api.requests[0].query == {"limit": "1"}


@pytest.mark.parametrize(
    ("status", "kind"), [(404, NotFound), (409, Conflict), (410, Gone), (403, KubeError), (500, KubeError)]
)
async def test_failures_become_the_errors_of_the_house(
    api: ScriptedApi, client: ApiClient, status: int, kind: type[KubeError]
) -> None:
    api.on("GET", PODS, refuse(status, "Because", "of this"))
    with pytest.raises(KubeError, match="of this") as caught:
        await client.get(PODS)
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason) == (status, "Because")


async def test_a_busy_server_says_how_long_to_wait(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, refuse(429, "TooManyRequests", headers={"Retry-After": "7"}))
    with pytest.raises(KubeError) as caught:
        await client.get(PODS)
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


async def test_a_failure_without_a_status_object_keeps_its_text(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, answer(502, b"\xff<html>bad gateway</html>"))
    with pytest.raises(KubeError, match="bad gateway"):
        await client.get(PODS)


async def test_a_broken_connection_has_status_0_and_its_cause(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, hang_up)
    with pytest.raises(KubeError) as caught:
        await client.get(PODS)
    assert caught.value.status == 0
    assert isinstance(caught.value.__cause__, aiohttp.ClientError)


async def test_a_request_ends_after_its_time(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, never)
    with pytest.raises(KubeError, match="TimeoutError") as caught:
        await client.get(PODS, within=0.05)
    assert caught.value.status == 0


async def test_a_request_without_a_time_of_its_own_has_the_clients(api: ScriptedApi) -> None:
    api.on("GET", PODS, never)
    async with ApiClient(api.configuration(), within=0.05) as client:
        with pytest.raises(KubeError, match="TimeoutError"):
            await client.get(PODS)


async def test_nobody_listening_has_status_0(api: ScriptedApi) -> None:
    configuration = api.configuration()
    await api.stop()
    async with ApiClient(configuration) as client:
        with pytest.raises(KubeError) as caught:
            await client.get(PODS)
    assert caught.value.status == 0
    await api.start()


async def test_writes_carry_body_and_content_type(api: ScriptedApi, client: ApiClient) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        api.on(method, PODS, answer(200, {}))
    body = {"metadata": {"name": "x"}}
    await client.post(PODS, body)
    await client.put(PODS, body)
    await client.patch(PODS, body)
    await client.delete(PODS, body)
    await client.delete(PODS)
    assert [r.json for r in api.requests[:4]] == [body] * 4
    assert api.requests[4].body == b""
    assert [r.headers["content-type"] for r in api.requests[:4]] == [
        "application/json",
        "application/json",
        MERGE_PATCH,
        "application/json",
    ]


async def test_pages_follow_the_continue_token(api: ScriptedApi, client: ApiClient) -> None:
    token = "a+b/c=&d"
    api.on(
        "GET",
        PODS,
        answer(200, {"metadata": {"resourceVersion": "5", "continue": token}, "items": [{"n": 1}, {"n": 2}]}),
        answer(200, {"metadata": {"resourceVersion": "5"}, "items": [{"n": 3}]}),
    )
    items = [bytes(item) async for page in client.pages(PODS, limit=2) for item in page.items or ()]
    assert items == [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}']
    assert [r.query for r in api.requests] == [{"limit": "2"}, {"limit": "2", "continue": token}]


async def test_a_page_that_is_no_list_is_a_fault(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, answer(200, b"[1"))
    with pytest.raises(KubeError, match="not a list"):
        [page async for page in client.pages(PODS)]


async def test_lines_are_joined_over_chunks_of_any_size(api: ScriptedApi, client: ApiClient) -> None:
    long = b"x" * 91_000
    text = b"one\n\ntwo\n" + long + b"\nlast\n"
    chunks = [text[i : i + 1000] for i in range(0, len(text), 1000)]
    api.on("GET", PODS, watch(*chunks, then="end"))
    lines = [line async for line in client.stream(PODS, inactivity=5)]
    assert lines == [b"one", b"two", long, b"last"]
    assert api.requests[0].query == {"watch": "1"}


async def test_a_line_that_was_cut_off_is_not_delivered(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, watch(b'whole\n{"type":"ADD', then="end"))
    assert [line async for line in client.stream(PODS, inactivity=5)] == [b"whole"]


async def test_a_silent_stream_is_dead_after_the_inactivity_time(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, watch(b"one\n"))
    lines: list[bytes] = []

    async def read() -> None:
        async for line in client.stream(PODS, inactivity=0.1):
            lines.append(line)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(KubeError, match="no answer") as caught:
        await read()
    assert caught.value.status == 0
    assert lines == [b"one"]


async def test_slow_reading_of_many_lines_lets_others_run_between(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("GET", PODS, watch(b"x\n" * 5, then="end"))
    beats = 0

    async def heartbeat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    pulse = asyncio.create_task(heartbeat())
    seen = []
    async for _ in client.stream(PODS, inactivity=5):
        seen.append(beats)
        busy_until = time.perf_counter() + 0.006  # more than the loop may be held for
        while time.perf_counter() < busy_until:
            pass
    pulse.cancel()
    assert len(seen) == 5
    assert len(set(seen)) == 5


async def test_the_token_goes_into_the_header_only(api: ScriptedApi) -> None:
    api.on("GET", PODS, refuse(403, "Forbidden"))
    async with ApiClient(api.configuration(token="s3cret\n")) as client:
        with pytest.raises(KubeError) as caught:
            await client.get(PODS)
    assert api.requests[0].headers["authorization"] == "Bearer s3cret"
    assert "s3cret" not in str(caught.value) + repr(caught.value)


async def test_a_token_is_never_sent_over_plain_http_to_a_network(api: ScriptedApi) -> None:
    configuration = api.configuration(token="s3cret")
    configuration.host = "http://192.0.2.1:8080"
    async with ApiClient(configuration) as client:
        with pytest.raises(KubeError, match="refused to send a token over plain HTTP") as caught:
            await client.get(PODS)
    assert "s3cret" not in str(caught.value)


async def test_unusable_tls_files_are_named() -> None:
    configuration = Configuration(host="https://127.0.0.1:1")
    configuration.ssl_ca_cert = "/nonexistent/ca.crt"
    with pytest.raises(KubeError, match="TLS files"):
        ApiClient(configuration)
