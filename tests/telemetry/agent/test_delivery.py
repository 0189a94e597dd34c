"""Delivery to replicas over TLS, on change, with back-off."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from extender.api.telemetry import Device, Readings, Sample
from extender.telemetry.agent.book import NodeBook
from extender.telemetry.agent.clock import Clock
from extender.telemetry.agent.delivery import Delivery
from extender.telemetry.agent.frames import Answer
from extender.telemetry.agent.metrics import AgentMetrics
from extender.telemetry.agent.settings import AgentSettings, ChangeBounds
from extender.telemetry.receiver import ReceiverDeps, routes
from tests.telemetry.conftest import NODE, QUICK, Replica, Tokens, free_port, make_intake, serving, until

CERTS = Path(__file__).resolve().parents[2] / "server" / "certs"
TLS = {"ssl_certfile": str(CERTS / "server-a.crt"), "ssl_keyfile": str(CERTS / "server-a.key")}


class Sender:
    """A delivery with a book to fill."""

    def __init__(self, folder: Path, target: str, resolve: Any = None, **settings: Any) -> None:
        token = folder / "token"
        token.write_text("good")
        whole = {**QUICK, "token_file": token, "target": target, **settings}
        self.book = NodeBook(
            node=NODE, boot_id="b", agent_id="a", bounds=ChangeBounds(), xid_keep_seconds=600.0
        )
        self.metrics = AgentMetrics()
        options = {"resolve": resolve} if resolve else {}
        self.delivery = Delivery(
            settings=AgentSettings(**whole), clock=Clock(), book=self.book, metrics=self.metrics, **options
        )

    def read(self, temperature: int) -> None:
        device = Device(uuid="GPU-a", readings=Readings(temperature=temperature))
        self.book.answered(Answer(1, "1", "1", (device,)), time.monotonic_ns(), processes=False)
        self.delivery.poke()

    def sends(self, outcome: str) -> float:
        return float(self.metrics.sends.labels(outcome)._value.get())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Sender]:
        task = asyncio.create_task(self.delivery.run())
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def receiver(**options: Any) -> AsyncIterator[tuple[Replica, int]]:
    replica = Replica(make_intake(), Tokens())
    replica.tokens.admit("good", NODE)
    deps = ReceiverDeps(replica.intake, replica.tokens, time.monotonic)
    async with serving(Starlette(routes=list(routes(deps))), **options) as port:
        yield replica, port


async def test_the_certificate_is_checked_for_the_services_name(tmp_path: Path) -> None:
    async with receiver(**TLS) as (replica, port):
        where: dict[str, Any] = {"addresses": (f"127.0.0.1:{port}",), "ca_file": CERTS / "ca.crt"}
        async with Sender(tmp_path, "https://localhost:8443", **where).running():
            await until(lambda: len(replica.samples) > 0)
        for wrong in ({"target": "https://other.svc:8443"}, {"ca_file": CERTS / "other-ca.crt"}):
            given = {"target": "https://localhost:8443", **where, **wrong}
            seen = len(replica.tokens.asked)
            async with Sender(tmp_path, **given).running() as sender:
                await until(lambda s=sender: s.sends("unreachable") >= 2)  # type: ignore[misc]  # bound now
            assert len(replica.tokens.asked) == seen  # no token went out


async def test_every_replica_gets_every_change_and_new_ones_are_found(tmp_path: Path) -> None:
    async with receiver() as (first, port_a), receiver() as (second, port_b):
        known = {("127.0.0.1", port_a)}

        async def resolve(host: str, _: int) -> Iterable[tuple[str, int]]:
            assert host == "localhost"
            return known

        async with Sender(
            tmp_path, "http://localhost:1", resolve, heartbeat_seconds=600.0
        ).running() as sender:
            await until(lambda: len(first.samples) == 1)
            known.add(("127.0.0.1", port_b))
            await until(lambda: len(second.samples) == 1)
            sender.read(90)
            for replica in (first, second):
                await until(lambda r=replica: r.device("GPU-a") is not None)  # type: ignore[misc]  # likewise
            known.discard(("127.0.0.1", port_a))
            await until(lambda: sender.metrics.replicas._value.get() == 1)
            seen = len(first.samples)
            sender.read(40)
            await until(lambda: len(second.samples) == 3)
            assert len(first.samples) == seen


async def test_one_replica_that_is_down_does_not_hold_up_the_other(tmp_path: Path) -> None:
    async with receiver() as (replica, port):
        addresses = (f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
        async with Sender(tmp_path, "http://localhost:1", addresses=addresses).running() as sender:
            await until(lambda: len(replica.samples) >= 2 and sender.sends("unreachable") >= 2)


async def test_what_resolves_off_this_machine_gets_nothing_over_plain_http(tmp_path: Path) -> None:
    async def resolve(_: str, port: int) -> Iterable[tuple[str, int]]:
        return {("192.0.2.1", port)}

    async with Sender(tmp_path, "http://localhost:1", resolve).running() as sender:
        await sender.delivery.flushed(0.1)
        await asyncio.sleep(0)
        assert sender.metrics.replicas._value.get() == 0


async def test_a_name_that_does_not_resolve_is_tried_again(tmp_path: Path) -> None:
    async with receiver() as (replica, port):
        faults = [OSError("no such name")]

        async def resolve(_host: str, _port: int) -> Iterable[tuple[str, int]]:
            if faults:
                raise faults.pop()
            return {("127.0.0.1", port)}

        async with Sender(tmp_path, "http://localhost:1", resolve).running() as sender:
            await until(lambda: len(replica.samples) > 0)
            assert sender.sends("unresolved") == 1


async def test_without_a_token_file_nothing_is_sent(tmp_path: Path) -> None:
    async with receiver() as (replica, port):
        sender = Sender(tmp_path, "http://localhost:1", addresses=(f"127.0.0.1:{port}",))
        (tmp_path / "token").unlink()
        async with sender.running():
            await until(lambda: sender.sends("no token") >= 2)
            assert replica.tokens.asked == []
            (tmp_path / "token").write_text("good")
            await until(lambda: len(replica.samples) > 0)


async def test_a_refusal_is_counted_by_its_status(tmp_path: Path) -> None:
    async with receiver() as (replica, port):
        replica.tokens.known.clear()
        async with Sender(
            tmp_path, "http://localhost:1", addresses=(f"127.0.0.1:{port}",)
        ).running() as sender:
            await until(lambda: sender.sends("401") >= 2)


async def test_a_long_sample_is_sent_with_gzip(tmp_path: Path) -> None:
    async with receiver() as (replica, port):
        where = (f"127.0.0.1:{port}",)
        async with Sender(tmp_path, "http://localhost:1", addresses=where, compress_above=0).running():
            await until(lambda: len(replica.samples) >= 2)


async def test_a_token_that_is_no_text_is_no_token(tmp_path: Path) -> None:
    sender = Sender(tmp_path, "http://localhost:1", addresses=(f"127.0.0.1:{free_port()}",))
    (tmp_path / "token").write_bytes(b"\xff")
    async with sender.running():
        await until(lambda: sender.sends("no token") >= 2)


async def test_a_fault_of_ours_ends_the_delivery_and_does_not_just_silence_a_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = Sender(
        tmp_path, "http://localhost:1", addresses=(f"127.0.0.1:{free_port()}",), resolve_seconds=600.0
    )

    def broken(*_: int) -> Sample:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(sender.book, "sample", broken)
    with pytest.raises(ValueError, match="a fault of ours"):
        await asyncio.wait_for(sender.delivery.run(), 10)
