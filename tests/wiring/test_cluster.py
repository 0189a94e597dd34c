"""A cluster listed once for the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from extender.model.errors import KubeError
from extender.settings import Settings, load
from extender.wiring import cluster
from extender.wiring.cluster import cluster_core, cluster_desk
from tests.kube.scripted_api import ScriptedApi, never, refuse
from tests.wiring.process import ROOT
from tests.wiring.served import fleet_with, kubeconfig, serve


def settings(api: ScriptedApi, folder: Path) -> Settings:
    return load(
        None,
        {
            "BERTH_POLICY__FILE": str(ROOT / "tests" / "wiring" / "data" / "policy.yaml"),
            "BERTH_KUBE__KUBECONFIG": str(kubeconfig(api, folder)),
        },
    )


async def test_every_kind_is_listed_once_and_nothing_is_written(api: ScriptedApi, tmp_path: Path) -> None:
    serve(api, fleet_with())
    core = await asyncio.wait_for(cluster_core(settings(api, tmp_path), "1"), 20)
    assert core.ledger.counts()["Node"] == 2
    assert {request.method for request in api.requests} == {"GET"}
    desk = await asyncio.wait_for(cluster_desk(settings(api, tmp_path), "1"), 20)
    assert len(desk.fleet("", 10).nodes) == 2


async def test_missing_rights_are_told_at_once(api: ScriptedApi, tmp_path: Path) -> None:
    api.on("GET", "/api/v1/nodes", refuse(403, "Forbidden", "nodes is forbidden"))
    with pytest.raises(KubeError, match="nodes is forbidden"):
        await asyncio.wait_for(cluster_core(settings(api, tmp_path), "1"), 20)
    assert len(api.requests) == 1


async def test_what_was_not_listed_in_time_is_named_with_the_reason(
    api: ScriptedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 1.5)
    serve(api, fleet_with())
    api.on("GET", "/apis/resource.k8s.io/v1/resourceslices", refuse(403, "Forbidden", "slices are forbidden"))
    api.on("GET", "/api/v1/pods", never)
    with pytest.raises(KubeError, match=r"not listed within 1\.5 s: .*ResourceSlice") as caught:
        await asyncio.wait_for(cluster_core(settings(api, tmp_path), "1"), 20)
    assert "Pod" in str(caught.value)
    assert "slices are forbidden" in str(caught.value)
    assert "Node" not in str(caught.value)
