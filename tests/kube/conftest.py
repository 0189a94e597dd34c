from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from extender.kube.client import ApiClient
from extender.kube.credentials import load
from tests.controlplane.cluster import ControlPlane
from tests.kube.scripted_api import ScriptedApi

NAMESPACE = "berth-system"
_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest_asyncio.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    async with ScriptedApi() as scripted:
        yield scripted


@pytest_asyncio.fixture
async def client(api: ScriptedApi) -> AsyncIterator[ApiClient]:
    async with ApiClient(api.configuration()) as made:
        yield made


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one module's own: these tests restart its API server and drop its history.

    Berth's ServiceAccount is in it, with the rights that deploy/ gives.
    """
    with ControlPlane(folder=tmp_path_factory.mktemp("kube-control-plane")) as running:
        running.create_namespace(NAMESPACE)
        for file in ("base/serviceaccount.yaml", "base/rbac.yaml", "overlays/bind/rbac.yaml"):
            for document in yaml.safe_load_all((_DEPLOY / file).read_text()):
                running.client().apply(document)
        yield running


@pytest_asyncio.fixture
async def berth(control_plane: ControlPlane) -> AsyncIterator[ApiClient]:
    """A client that acts as Berth's ServiceAccount."""
    token = control_plane.service_account_token(NAMESPACE, "berth")
    async with await connect(control_plane, token) as made:
        yield made


@pytest_asyncio.fixture
async def root(control_plane: ControlPlane) -> AsyncIterator[ApiClient]:
    """A client that may do everything, for writers whose rights are not in the base."""
    async with await connect(control_plane, None) as made:
        yield made


async def connect(control_plane: ControlPlane, token: str | None) -> ApiClient:
    path = control_plane.kubeconfig(token=token)
    return ApiClient(await load(time.monotonic, str(path)))
