"""Fixtures of the tests of deploy/: one control plane with the manifests applied as a person would."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.deploy import manifests
from tests.deploy.manifests import Applier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def deploy_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: the manifests are cluster-wide and stay applied."""
    with ControlPlane(folder=tmp_path_factory.mktemp("deploy")) as running:
        yield running


@pytest.fixture(scope="session")
def applied(deploy_cluster: ControlPlane) -> Iterator[Applier]:
    """The applier after `overlays/second-scheduler`, which holds the whole base."""
    applier = Applier(deploy_cluster)
    for obj in manifests.build(manifests.SECOND_SCHEDULER):
        applier.apply(obj)
    yield applier
    applier.close()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that deploy/make-certificates fills, with this machine's names in the server's."""
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(
        [str(manifests.DEPLOY / "make-certificates"), str(folder), "127.0.0.1"],
        check=True,
        timeout=60,
    )
    return folder
