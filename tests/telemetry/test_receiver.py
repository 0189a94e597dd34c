"""The receiver over real HTTP: who may write what, and what changes nothing."""

from __future__ import annotations

import asyncio
import gzip
import math
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from extender.api.telemetry import PATH, SCHEMA, Device, Driver, DriverState, Readings, Sample
from extender.model.errors import KubeError
from extender.telemetry.receiver import Limits, ReceiverDeps, routes
from extender.verbs.views import Identity
from tests.telemetry.conftest import NODE, Replica, Tokens, make_intake, plain_client, serving

DEVICE = Device(uuid="GPU-a", pci="0000:1a:00.0", readings=Readings(temperature=40, memory_used=1))
SAMPLE = Sample(SCHEMA, NODE, "boot", "agent", 1, 10, 9, 0, Driver(DriverState.OK), (DEVICE,))


class Desk:
    """A receiver with a clock that stands until it is moved."""

    def __init__(self) -> None:
        self.replica = Replica(make_intake(), Tokens())
        self.replica.tokens.admit("good", NODE)
        self.now = 1000.0
        self.limits = Limits(body=1 << 20, inflated=1 << 20)
        self.url = ""
        self.client = plain_client()

    def app(self, **changes: Any) -> Starlette:
        deps = ReceiverDeps(
            self.replica.intake, self.replica.tokens, lambda: self.now, limits=self.limits, **changes
        )
        return Starlette(routes=list(routes(deps)))

    async def post(self, body: bytes, token: str = "good", **headers: str) -> httpx.Response:
        names = {"content-type": "application/msgpack", "authorization": f"Bearer {token}"}
        given = names | {k.replace("_", "-"): v for k, v in headers.items()}
        return await self.client.post(self.url + PATH, content=body, headers=given)

    async def send(self, sample: Sample, **headers: str) -> httpx.Response:
        return await self.post(msgspec.msgpack.encode(sample), **headers)

    def unchanged(self) -> bool:
        return len(self.replica.intake.store) == 0 and not self.replica.samples


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    async with serving(made.app()) as port:
        made.url = f"http://127.0.0.1:{port}"
        async with made.client:
            yield made


async def test_messagepack_json_and_gzip_are_taken(desk: Desk) -> None:
    assert (await desk.send(SAMPLE)).status_code == 204
    body = msgspec.json.encode(replace(SAMPLE, sequence=2))
    assert (await desk.post(body, content_type="application/json; charset=utf-8")).status_code == 204
    packed = gzip.compress(msgspec.msgpack.encode(replace(SAMPLE, sequence=3)))
    assert (await desk.post(packed, content_encoding="gzip")).status_code == 204
    assert [s.sequence for s in desk.replica.samples] == [1, 2, 3]


@pytest.mark.parametrize(
    ("headers", "status", "why"),
    [
        ({"authorization": ""}, 401, "no token"),
        ({"authorization": "Basic Zm9vOmJhcg=="}, 401, "no token"),
        ({"authorization": "Bearer forged"}, 401, "token"),
    ],
)
async def test_without_a_valid_token_nothing_is_read(
    desk: Desk, headers: dict[str, str], status: int, why: str
) -> None:
    answer = await desk.send(SAMPLE, **headers)
    assert answer.status_code == status
    assert answer.headers["www-authenticate"] == "Bearer"
    assert desk.unchanged()
    assert desk.replica.refused(why) == 1


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"authentication.kubernetes.io/node-name": ()},
        {"authentication.kubernetes.io/node-name": ("n1", "n2")},
    ],
)
async def test_a_token_that_speaks_for_no_single_node_is_refused(
    desk: Desk, extra: dict[str, tuple[str, ...]]
) -> None:
    desk.replica.tokens.known["good"] = Identity("system:serviceaccount:berth:agent", extra=extra)
    assert (await desk.send(SAMPLE)).status_code == 403
    assert desk.unchanged()


async def test_the_audience_is_asked_for(desk: Desk) -> None:
    await desk.send(SAMPLE)
    assert desk.replica.tokens.asked == [("good", "berth")]


async def test_a_sample_of_another_node_is_refused(desk: Desk) -> None:
    await desk.send(SAMPLE)
    desk.replica.tokens.admit("evil", "n2")
    answer = await desk.send(replace(SAMPLE, sequence=2), token="evil")
    assert answer.status_code == 403
    assert len(desk.replica.samples) == 1
    assert desk.replica.refused("node") == 1


async def test_only_the_agents_account_may_send() -> None:
    desk = Desk()
    desk.replica.tokens.admit("other", NODE, "system:serviceaccount:default:default")
    app = desk.app(accounts={"system:serviceaccount:berth:agent"})
    async with desk.client, serving(app) as port:
        desk.url = f"http://127.0.0.1:{port}"
        assert (await desk.send(SAMPLE, token="other")).status_code == 403
        assert desk.unchanged()
        assert (await desk.send(SAMPLE)).status_code == 204


async def test_a_replayed_or_old_sample_changes_nothing(desk: Desk) -> None:
    await desk.send(replace(SAMPLE, sequence=5))
    for sequence in (5, 4):
        changed = replace(SAMPLE, sequence=sequence, devices=(replace(DEVICE, uuid="GPU-z"),))
        assert (await desk.send(changed)).status_code == 409
    assert len(desk.replica.samples) == 1
    assert len(desk.replica.intake.store) == 1
    assert desk.replica.refused("replayed") == 2


def built(path: list[str | int], value: object) -> Any:
    """SAMPLE in plain values, with one of them replaced."""
    whole = msgspec.to_builtins(SAMPLE)
    at = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return whole


BAD: list[tuple[list[str | int], object]] = [
    (["devices", 0, "readings", "temperature"], math.nan),
    (["devices", 0, "readings", "temperature"], math.inf),
    (["devices", 0, "readings", "temperature"], -1),
    (["devices", 0, "readings", "temperature"], 4000),
    (["devices", 0, "readings", "temperature"], 1.5),
    (["devices", 0, "readings", "temperature"], True),
    (["devices", 0, "readings", "temperature"], "fine"),
    (["devices", 0, "readings", "utilisationGpu"], 101),
    (["devices", 0, "readings", "memoryUsed"], 2**60),
    (["devices", 0, "uuid"], ""),
    (["devices", 0, "uuid"], "G" * 200),
    (["devices", 0, "state"], "splendid"),
    (["devices"], [{"uuid": f"GPU-{i}"} for i in range(513)]),
    (["sequence"], 0),
    (["sequence"], -5),
    (["sentNs"], -1),
    (["node"], ""),
    (["driver", "state"], "fast"),
]


@pytest.mark.parametrize(
    ("path", "value"), BAD, ids=[f"{'.'.join(map(str, p))}={str(v)[:12]}" for p, v in BAD]
)
async def test_a_value_that_can_not_be_is_refused_by_its_path(
    desk: Desk, path: list[str | int], value: object
) -> None:
    answer = await desk.post(msgspec.msgpack.encode(built(path, value)))
    assert answer.status_code == 400
    assert str(path[-1]) in answer.text
    assert desk.unchanged()
    assert desk.replica.refused("malformed") == 1


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x81", b"{", b'{"schema":NaN}', b"\x93" * 5000, b"[" * 100_000, b"\xff\xfe"]
)
@pytest.mark.parametrize("kind", ["application/json", "application/msgpack"])
async def test_what_is_no_sample_is_refused(desk: Desk, body: bytes, kind: str) -> None:
    assert (await desk.post(body, content_type=kind)).status_code == 400
    assert desk.unchanged()


async def test_a_sample_that_contradicts_itself_is_refused(desk: Desk) -> None:
    overfull = replace(DEVICE, readings=Readings(memory_total=1, memory_used=2))
    assert (await desk.send(replace(SAMPLE, devices=(overfull,)))).status_code == 400
    assert desk.unchanged()
    assert desk.replica.refused("contradictory") == 1


@pytest.mark.parametrize("body", [{"schema": 2, "everything": "else"}, built(["schema"], 2)])
async def test_another_schema_is_named(desk: Desk, body: object) -> None:
    answer = await desk.post(msgspec.msgpack.encode(body))
    assert (answer.status_code, answer.text) == (400, "schema: 2 is not 1")
    assert desk.unchanged()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "text/plain"}, 415),
        ({"content_encoding": "br"}, 415),
        ({"content_encoding": "gzip"}, 400),
    ],
)
async def test_other_types_and_encodings_are_refused(
    desk: Desk, headers: dict[str, str], status: int
) -> None:
    assert (await desk.send(SAMPLE, **headers)).status_code == status
    assert desk.unchanged()


async def test_a_gzip_that_is_cut_is_refused(desk: Desk) -> None:
    whole = gzip.compress(msgspec.msgpack.encode(SAMPLE))
    assert (await desk.post(whole[:-9], content_encoding="gzip")).status_code == 400
    assert desk.unchanged()


async def test_a_gzip_bomb_is_refused_without_being_inflated(desk: Desk) -> None:
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(20)), packer.flush()])
    assert len(bomb) < desk.limits.body
    answer = await desk.post(bomb, content_encoding="gzip")
    assert answer.status_code == 413
    assert desk.unchanged()


async def test_a_body_of_100_mb_is_refused_before_it_is_read(desk: Desk) -> None:
    port = int(desk.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\ncontent-length: 104857600\r\n\r\n"
    )
    writer.write(head.encode())
    await writer.drain()
    status = await asyncio.wait_for(reader.readline(), 10)  # not a byte of the body was sent
    writer.close()
    assert b" 413 " in status
    assert desk.unchanged()
    assert desk.replica.refused("size") == 1


async def test_a_body_without_a_length_is_cut_at_the_limit(desk: Desk) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(1 << 16)

    async with plain_client() as client:
        try:
            answer = await client.post(
                desk.url + PATH, content=endless(), headers={"authorization": "Bearer good"}, timeout=10
            )
            assert answer.status_code == 413
        except httpx.NetworkError:
            pass  # the server closed while we were still sending: as good an answer
    assert desk.unchanged()
    assert desk.replica.refused("size") == 1


async def test_a_node_that_sends_too_often_is_held_back_and_others_are_not(desk: Desk) -> None:
    desk.replica.tokens.admit("other", "n2")
    burst = int(desk.limits.node_burst)
    answers = [(await desk.send(replace(SAMPLE, sequence=i + 1))).status_code for i in range(burst + 1)]
    assert answers == [204] * burst + [429]
    assert (await desk.send(replace(SAMPLE, node="n2"), token="other")).status_code == 204
    desk.now += 1.0
    assert (await desk.send(replace(SAMPLE, sequence=99))).status_code == 204


async def test_forged_tokens_are_soon_not_reviewed_any_more(desk: Desk) -> None:
    burst = int(desk.limits.failure_burst)
    for _ in range(burst):
        assert (await desk.send(SAMPLE, token="forged")).status_code == 401
    assert (await desk.send(SAMPLE, token="forged")).status_code == 429
    assert len(desk.replica.tokens.asked) == burst
    desk.now += 3600.0
    assert (await desk.send(SAMPLE)).status_code == 204


async def test_tokens_of_other_accounts_are_soon_not_reviewed_any_more() -> None:
    desk = Desk()
    desk.replica.tokens.admit("other", NODE, "system:serviceaccount:default:default")
    app = desk.app(accounts={"system:serviceaccount:berth:agent"})
    burst = int(desk.limits.failure_burst)
    async with desk.client, serving(app) as port:
        desk.url = f"http://127.0.0.1:{port}"
        answers = [(await desk.send(SAMPLE, token="other")).status_code for _ in range(burst + 1)]
    assert answers == [403] * burst + [429]
    assert len(desk.replica.tokens.asked) == burst


@pytest.mark.parametrize(
    ("url", "peer", "status"),
    [
        ("http://replica", "192.0.2.1", 403),
        ("https://replica", "192.0.2.1", 204),
        ("http://replica", "127.0.0.1", 204),
    ],
)
async def test_a_token_in_the_clear_is_taken_from_this_machine_only(url: str, peer: str, status: int) -> None:
    desk = Desk()
    transport = httpx.ASGITransport(desk.app(), client=(peer, 1))
    async with desk.client, httpx.AsyncClient(transport=transport) as client:
        headers = {"content-type": "application/msgpack", "authorization": "Bearer good"}
        answer = await client.post(url + PATH, content=msgspec.msgpack.encode(SAMPLE), headers=headers)
    assert answer.status_code == status
    assert len(desk.replica.tokens.asked) == (status == 204)


async def test_when_tokens_can_not_be_reviewed_the_agent_is_asked_to_come_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: str) -> Identity | None:
        raise KubeError("down")

    monkeypatch.setattr(desk.replica.tokens, "authenticate", fail)
    assert (await desk.send(SAMPLE)).status_code == 503
    assert desk.unchanged()


async def test_only_post_is_served(desk: Desk) -> None:
    async with plain_client() as client:
        assert (await client.get(desk.url + PATH)).status_code == 405
