"""`berth fleet`, `explain` and `decisions` show what a desk shows, over a real socket or from a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse

from extender.cli import reading
from extender.cli.remote import RemoteDesk, RemoteError
from extender.server.auth import Door
from extender.verbs.ports import ReadDesk
from tests.cli.commands import Ended, Run, runner
from tests.server.conftest import make_app
from tests.server.desk import Desk, Reviewer
from tests.server.running import running


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(make_app()) as server:
        yield server.url


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    reviewer = Reviewer()
    with running(make_app(door=Door(reviewer, reviewer, "berth", loopback=True))) as server:
        yield server.url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], url: str) -> Run:
    command = runner(capsys)

    def against(*arguments: str) -> Ended:
        return command(*arguments, "--url", url)

    return against


def test_a_remote_desk_shows_exactly_what_the_desk_shows(url: str) -> None:
    remote, desk = RemoteDesk(url), Desk()
    assert remote.fleet("node-1", 2) == desk.fleet("node-1", 2)
    assert remote.node("node-0") == desk.node("node-0")
    assert remote.node("node/9 ?") is None
    assert list(remote.decisions(2, "")) == list(desk.decisions(2, ""))
    assert list(remote.gangs()) == list(desk.gangs())
    assert remote.explain({"spec": {}}, ["node-1"], 5) == desk.explain({"spec": {}}, ["node-1"], 5)
    assert remote.explain_existing("team", "pod", [], 5) == desk.explain_existing("team", "pod", [], 5)
    assert remote.explain_existing("team", "nobody", [], 5) is None
    remote.close()


def test_the_fleet_is_shown_with_totals_and_nodes(run: Run) -> None:
    ended = run("fleet")
    assert ended.status == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["gpu.example.com", "H200", "8", "5", "2", "1"] in lines
    assert ["node-2", "not", "ready", "5", "/", "8", "H200", "3", "/", "8", "nvidia.com/gpu"] in lines


def test_the_fleet_as_json_has_every_page(run: Run) -> None:
    fleet = json.loads(run("fleet", "--json").out)
    assert (fleet["nodeCount"], fleet["next"]) == (5, "")
    assert [node["name"] for node in fleet["nodes"]] == [f"node-{i}" for i in range(5)]


def test_a_fleet_of_several_pages_is_shown_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setattr(reading, "PAGE", 2)
    fleet = json.loads(runner(capsys)("fleet", "--json", "--url", url).out)
    assert [node["name"] for node in fleet["nodes"]] == [f"node-{i}" for i in range(5)]


def test_json_is_what_the_api_answers(run: Run, url: str) -> None:
    answered = httpx.get(f"{url}/api/v1/decisions", params={"limit": 2}, trust_env=False)
    assert json.loads(run("decisions", "--limit", "2", "--json").out) == answered.json()


def test_an_existing_pod_is_explained(run: Run) -> None:
    ended = run("explain", "team/pod")
    assert ended.status == 0
    assert "team/pod (training): 1 of 2 nodes pass; refused: 1 DeviceLost" in ended.out
    assert "pack 0.500 x 2: 3 of 8 taken" in ended.out
    assert "DeviceLost: a device is lost" in ended.out


def test_a_pod_of_a_file_is_explained(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: ConfigMap\n---\nkind: Pod\nspec: {}\n")
    explained = json.loads(run("explain", str(path), "--node", "node-1", "--json").out)
    assert [node["name"] for node in explained["nodes"]] == ["node-1"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("kind: Node", "there is no Pod in it"), ("a: [", "line 1"), ("kind: Pod", "pod.spec: is missing")],
)
def test_a_file_without_a_usable_pod_is_an_error(
    run: Run, tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(content)
    ended = run("explain", str(path))
    assert ended.status == 2
    assert complaint in ended.err


def test_a_pod_that_json_can_not_say_is_an_error(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("{kind: Pod, spec: {priority: .nan}}")
    ended = run("explain", str(path))
    assert ended.status == 2
    assert ended.err.startswith("pod: can't be written as JSON: ")


def test_an_unknown_pod_is_an_error_that_names_it(run: Run) -> None:
    ended = run("explain", "nobody")
    assert (ended.status, ended.err) == (2, "pod default/nobody is not known\n")


def test_decisions_are_shown(run: Run) -> None:
    ended = run("decisions", "--pod", "pod-1")
    assert ended.status == 0
    assert "team/pod-1" in ended.out
    assert "1970-01-01 00:01:41Z" in ended.out
    assert "2 DeviceLost" in ended.out
    assert "pod-2" not in ended.out


def test_a_token_opens_a_guarded_service(
    capsys: pytest.CaptureFixture[str], guarded: str, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("good\n")
    assert runner(capsys)("fleet", "--url", guarded, "--token-file", str(token)).status == 0
    refused = runner(capsys)("fleet", "--url", guarded)
    assert (refused.status, refused.err) == (2, f"{guarded}: 401: a bearer token is required\n")


def test_a_service_that_is_down_is_an_error_and_not_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    ended = runner(capsys)("fleet", "--url", "http://127.0.0.1:1")
    assert ended.status == 2
    assert ended.err.startswith("http://127.0.0.1:1: ")


def test_a_service_that_is_not_berth_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with running(PlainTextResponse("hello")) as server:
        ended = runner(capsys)("fleet", "--url", server.url)
    assert ended.status == 2
    assert "the answer is not Berth's" in ended.err


def test_a_token_never_goes_over_plain_http_to_another_machine() -> None:
    with pytest.raises(RemoteError, match="plain HTTP"):
        RemoteDesk("http://berth.example.com", "token")


@pytest.mark.parametrize("url", ["", "berth", "ftp://berth", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(RemoteError, match="no http or https URL"):
        RemoteDesk(url)


def test_a_folder_is_shown_through_its_door(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    opened: list[Path] = []

    @contextmanager
    def desk_of(path: Path) -> Iterator[ReadDesk]:
        opened.append(path)
        yield Desk()

    ended = runner(capsys, desk_of_folder=desk_of)("fleet", "--from", str(tmp_path))
    assert (ended.status, opened) == (0, [tmp_path])
    assert "node-4" in ended.out


def test_a_folder_and_the_cluster_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    ended = runner(capsys)("fleet", "--from", "x", "--cluster")
    assert (ended.status, ended.err) == (2, "--from and --cluster exclude each other\n")


def test_the_cluster_is_not_available_without_its_door(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner(capsys)("fleet", "--cluster").err == "--cluster is not available here\n"
