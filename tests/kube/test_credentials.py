from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from extender.kube.client import ApiClient
from extender.kube.credentials import REFRESH_SECONDS, load, plain_http_leaves_machine
from extender.model.errors import KubeError
from tests.kube.recording import FakeTime
from tests.kube.scripted_api import ScriptedApi, answer


def kubeconfig(folder: Path, server: str, user: dict[str, object]) -> str:
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return str(path)


async def test_a_token_file_is_read_again_after_a_while(api: ScriptedApi, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    time = FakeTime()
    configuration = await load(time.pace().clock, kubeconfig(tmp_path, api.url, {"tokenFile": str(token)}))
    api.on("GET", "/version", answer(200, {}))
    async with ApiClient(configuration) as client:
        await client.get("/version")
        token.write_text("second\n")
        await client.get("/version")
        time.now += REFRESH_SECONDS
        await client.get("/version")
    sent = [r.headers["authorization"] for r in api.requests]
    assert sent == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_token_for_plain_http_over_a_network_is_refused_at_the_start(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://192.0.2.1:8080", {"token": "s3cret"})
    with pytest.raises(KubeError, match="plain HTTP") as caught:
        await load(FakeTime().pace().clock, path)
    assert "s3cret" not in str(caught.value)


async def test_plain_http_without_a_token_is_allowed(tmp_path: Path) -> None:
    configuration = await load(FakeTime().pace().clock, kubeconfig(tmp_path, "http://192.0.2.1:8080", {}))
    assert configuration.host == "http://192.0.2.1:8080"


async def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text("- [")
    with pytest.raises(KubeError, match="broken"):
        await load(FakeTime().pace().clock, str(path))
    with pytest.raises(KubeError, match="absent"):
        await load(FakeTime().pace().clock, str(tmp_path / "absent"))


async def test_outside_a_cluster_there_are_no_in_cluster_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeError, match="in-cluster"):
        await load(FakeTime().pace().clock)


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("https://example.com", False),
        ("http://127.0.0.1:8001", False),
        ("http://[::1]:8001", False),
        ("http://localhost", False),
        ("http://localhost.example.com", True),
        ("http://10.0.0.1", True),
        ("http://127.0.0.1.example.com", True),
    ],
)
def test_only_this_machine_may_be_spoken_to_in_the_clear(url: str, leaves: bool) -> None:
    assert plain_http_leaves_machine(url) is leaves
