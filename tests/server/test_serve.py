"""The listener keeps connections, and stops gently."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import httpx
import pytest

from extender.model.errors import SettingsError
from extender.server.serve import HttpServer, freeze_after, run_loop
from extender.settings import ServerSettings
from tests.server.conftest import make_app
from tests.server.running import running

# A process with one slow route. The route says when it has begun, and ends when its client sends the rest of
# the body, so that nothing depends on time.
PROCESS = textwrap.dedent(
    """
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    from extender.server.serve import HttpServer, run_loop
    from extender.settings import ServerSettings

    async def slow(request):
        print("begun", flush=True)
        return PlainTextResponse(str(len(await request.body())))

    server = HttpServer(
        Starlette(routes=[Route("/slow", slow, methods=["POST"])]),
        ServerSettings(port=0, shutdown_grace_seconds=GRACE),
    )

    async def main():
        await server.run(lambda: print(server.port, flush=True))
        print("after", flush=True)

    run_loop(main())
    """
)


def start(grace: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROCESS.replace("GRACE", str(grace))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    with start(grace=20) as started:
        yield started
        started.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return next(text for text in process.stdout if "listening" not in text).strip()


def open_request(process: subprocess.Popen[str]) -> socket.socket:
    """Begin a request of ten bytes and send four of them."""
    connection = socket.create_connection(("127.0.0.1", int(line(process))), timeout=20)
    connection.sendall(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nfour")
    assert line(process) == "begun"
    return connection


def received(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(4096), b""))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_open_request_and_ends_without_an_error(
    process: subprocess.Popen[str], number: signal.Signals
) -> None:
    with open_request(process) as connection:
        port = connection.getpeername()[1]
        process.send_signal(number)
        while _accepts(port):
            pass
        connection.sendall(b"sixsix")
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"10")
    assert line(process) == "after"
    assert process.wait(20) == 0


def test_idle_connections_do_not_hold_up_the_stop(process: subprocess.Popen[str]) -> None:
    with socket.create_connection(("127.0.0.1", int(line(process))), timeout=20) as connection:
        process.terminate()
        assert received(connection) == b""
    assert process.wait(20) == 0


def test_a_request_that_outlives_the_grace_is_cut() -> None:
    with start(grace=0) as process, open_request(process):
        process.terminate()
        assert process.wait(20) == 0


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=20).close()
    except ConnectionError:
        return False
    return True


def test_one_connection_serves_many_requests() -> None:
    with running(make_app()) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        ports = set()
        for _ in range(3):
            with client.stream("GET", "/livez") as answer:
                ports.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
                answer.read()
        assert len(ports) == 1


def test_a_taken_port_is_a_settings_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"can't listen on 127.0.0.1 port {port}"):
            HttpServer(make_app(), ServerSettings(port=port))


def test_it_listens_on_ipv6_too() -> None:
    with running(make_app(), ServerSettings(host="::1", port=0)) as server:
        assert httpx.get(f"{server.url}/livez", trust_env=False).text == "ok"


def test_the_heap_is_frozen_once_everything_is_synced() -> None:
    async def main() -> None:
        synced = asyncio.Event()
        freezing = asyncio.create_task(freeze_after(synced))
        await asyncio.sleep(0)
        assert gc.get_freeze_count() == before
        synced.set()
        await freezing
        assert gc.get_freeze_count() > before

    before = gc.get_freeze_count()
    try:
        run_loop(main())
    finally:
        gc.unfreeze()
