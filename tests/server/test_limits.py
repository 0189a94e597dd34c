"""Bodies beyond the limit are refused, whatever they say of their length."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.server.conftest import LIMIT, Client, make_app


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(0, size, 10_000):
        yield b"x" * 10_000


def test_a_body_of_the_limit_is_read(client: httpx.Client) -> None:
    assert client.post("/extender/filter", content=b"x" * LIMIT).text == str(LIMIT)
    assert client.post("/extender/filter", content=chunks(LIMIT)).text == str(LIMIT)


@pytest.mark.parametrize("size", [LIMIT + 1, 3 * LIMIT])
def test_a_declared_length_beyond_the_limit_is_413(client: httpx.Client, size: int) -> None:
    answer = client.post("/extender/filter", content=b"x" * size)
    assert (answer.status_code, answer.json()) == (413, {"error": f"body: larger than {LIMIT} bytes"})


def test_a_body_in_chunks_beyond_the_limit_is_413(client: httpx.Client) -> None:
    assert client.post("/extender/filter", content=chunks(2 * LIMIT)).status_code == 413


def test_the_read_api_has_the_same_limit(client: httpx.Client) -> None:
    assert client.post("/api/v1/explain", content=b" " * (LIMIT + 1)).status_code == 413


def test_the_server_goes_on_after_a_refusal(client: httpx.Client) -> None:
    client.post("/extender/filter", content=b"x" * (LIMIT + 1))
    assert client.post("/extender/filter", content=b"xyz").text == "3"


def test_a_client_that_asks_first_is_not_made_to_send(connect: Client) -> None:
    client = connect(make_app())
    headers = f"Host: x\r\nContent-Length: {LIMIT + 1}\r\nExpect: 100-continue\r\n"
    head = f"POST /extender/filter HTTP/1.1\r\n{headers}\r\n"
    with socket.create_connection(
        (client.base_url.host, client.base_url.port or 0), timeout=20
    ) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_length_that_is_no_number_is_400_and_no_crash(connect: Client) -> None:
    client = connect(make_app())
    with socket.create_connection(
        (client.base_url.host, client.base_url.port or 0), timeout=20
    ) as connection:
        connection.sendall(b"POST /extender/filter HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert client.get("/livez").status_code == 200
