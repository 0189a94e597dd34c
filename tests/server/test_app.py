"""The shell: probes, metrics, documentation, and faults as JSON."""

from __future__ import annotations

import httpx
import pytest

from tests.server.conftest import Client, make_app


def test_the_process_is_alive(client: httpx.Client) -> None:
    assert client.get("/livez").text == "ok"


def test_ready_names_what_is_not_synced(connect: Client) -> None:
    waiting = ["Pod", "ResourceSlice"]
    client = connect(make_app(waiting=lambda: waiting))
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"ready": False, "waiting": ["Pod", "ResourceSlice"]})
    waiting.clear()
    assert (client.get("/readyz").status_code, client.get("/readyz").json()["ready"]) == (200, True)


def test_metrics_are_served_as_text(client: httpx.Client) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "berth_test 1.0" in answer.text


def test_metrics_are_served_as_openmetrics_to_who_asks(client: httpx.Client) -> None:
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_the_api_is_documented(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert sorted(document["paths"]) == [
        "/api/v1/decisions",
        "/api/v1/explain",
        "/api/v1/fleet",
        "/api/v1/gangs",
        "/api/v1/nodes/{name}",
    ]
    assert document["info"]["version"] == "1.2.3"
    assert "text/html" in client.get("/docs").headers["content-type"]


def test_every_field_of_the_documented_answers_is_camel_case(client: httpx.Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    names = {name for schema in schemas.values() for name in schema.get("properties", {})}
    assert "podUid" in names
    assert not [name for name in names if "_" in name]


@pytest.mark.parametrize(
    "path", ["/missing", "/api/v1/fleet/", "/extender/filter/", "//livez", "/api/v1/nodes/a%2Fb"]
)
def test_an_unknown_path_is_a_404_in_json(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "Not Found" in answer.json()["error"]


def test_a_wrong_method_is_a_405_in_json_that_names_the_right_one(client: httpx.Client) -> None:
    answer = client.delete("/api/v1/fleet")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json() == {"error": "Method Not Allowed: DELETE /api/v1/fleet"}


def test_a_fault_of_ours_shows_no_traceback(connect: Client) -> None:
    client = connect(make_app())
    answer = client.post("/extender/broken")
    assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})


def test_the_server_does_not_say_what_it_is(client: httpx.Client) -> None:
    assert "server" not in client.get("/livez").headers
