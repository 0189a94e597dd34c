"""`/api` asks who reads, and never takes a token over plain HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from extender.server.auth import Door
from extender.settings import ServerSettings, TlsSettings
from tests.server.conftest import Client, make_app
from tests.server.desk import Desk, Reviewer
from tests.server.running import CERTS, running

TLS = ServerSettings(
    port=0, tls=TlsSettings(cert_file=CERTS / "server-a.crt", key_file=CERTS / "server-a.key")
)


@pytest.fixture(autouse=True)
def nothing_asked(reviewer: Reviewer) -> None:
    reviewer.asked.clear()


@pytest.fixture(scope="module")
def secure(reviewer: Reviewer) -> Iterator[httpx.Client]:
    app = make_app(door=Door(reviewer, reviewer, "berth"))
    trust = ssl.create_default_context(cafile=str(CERTS / "ca.crt"))
    with (
        running(app, TLS) as server,
        httpx.Client(base_url=server.url, verify=trust, trust_env=False) as client,
    ):
        yield client


def ask(client: httpx.Client, token: str | None, path: str = "/api/v1/fleet") -> httpx.Response:
    return client.get(path, headers={} if token is None else {"Authorization": f"Bearer {token}"})


def test_a_reviewed_token_with_the_right_to_the_path_reads(secure: httpx.Client, reviewer: Reviewer) -> None:
    assert ask(secure, "good").status_code == 200
    assert reviewer.asked == [("good", "berth"), ("get", "/api/v1/fleet")]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic Zm9v"}, {"Authorization": "Bearer"}])
def test_without_a_token_the_answer_is_401(
    secure: httpx.Client, reviewer: Reviewer, headers: dict[str, str]
) -> None:
    answer = secure.get("/api/v1/fleet", headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert reviewer.asked == []


def test_a_token_that_is_not_valid_is_401(secure: httpx.Client) -> None:
    assert ask(secure, "forged").status_code == 401


def test_a_reader_without_the_right_to_the_path_is_403(secure: httpx.Client) -> None:
    answer = ask(secure, "mute", "/api/v1/gangs")
    assert (answer.status_code, answer.json()) == (403, {"error": "'mute' may not get /api/v1/gangs"})


def test_a_review_that_fails_is_503_and_lets_nobody_in(secure: httpx.Client) -> None:
    answer = ask(secure, "broken")
    assert (answer.status_code, answer.json()) == (503, {"error": "the API server could not be asked"})


@pytest.mark.parametrize("path", ["fleet", "nodes/node-0", "decisions", "gangs"])
def test_every_read_is_guarded(secure: httpx.Client, path: str) -> None:
    assert ask(secure, None, f"/api/v1/{path}").status_code == 401


def test_a_body_is_not_even_parsed_before_the_guard(secure: httpx.Client) -> None:
    assert secure.post("/api/v1/explain", content=b"{").status_code == 401


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/openapi.json"])
def test_probes_metrics_and_documentation_are_open(secure: httpx.Client, path: str) -> None:
    assert ask(secure, None, path).status_code == 200


def test_the_documentation_says_that_a_token_is_needed(secure: httpx.Client) -> None:
    document = secure.get("/openapi.json").json()
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert document["paths"]["/api/v1/fleet"]["get"]["security"] == [{"HTTPBearer": []}]


def test_over_plain_http_a_token_is_refused_unread(connect: Client, reviewer: Reviewer) -> None:
    client = connect(make_app(door=Door(reviewer, reviewer, "berth")))
    answer = ask(client, "good")
    assert (answer.status_code, answer.json()) == (403, {"error": "tokens are not accepted over plain HTTP"})
    assert reviewer.asked == []


def test_nobody_can_claim_that_plain_http_was_tls(connect: Client, reviewer: Reviewer) -> None:
    client = connect(make_app(door=Door(reviewer, reviewer, "berth")))
    client.headers["X-Forwarded-Proto"] = "https"
    assert ask(client, "good").status_code == 403


def test_a_server_for_this_machine_alone_takes_tokens_over_plain_http(
    connect: Client, reviewer: Reviewer
) -> None:
    client = connect(make_app(door=Door(reviewer, reviewer, "berth", loopback=True)))
    assert ask(client, "good").status_code == 200
    assert ask(client, "forged").status_code == 401


def test_a_reader_who_is_refused_never_reaches_the_desk(reviewer: Reviewer) -> None:
    class Shut(Desk):
        def fleet(self, after: str, limit: int) -> Any:
            raise AssertionError((after, limit))

    app = make_app(door=Door(reviewer, reviewer, "berth", loopback=True), desk=Shut())
    with running(app) as server:
        answer = httpx.get(
            f"{server.url}/api/v1/fleet", headers={"Authorization": "Bearer mute"}, trust_env=False
        )
    assert answer.status_code == 403
