"""A desk over Kubernetes YAML in a folder, for the command line: no server, no loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from extender.kube.kinds import REQUIRED
from extender.settings import Settings
from extender.sim.manifests import Skipped, load
from extender.sim.memory import MemoryApi
from extender.verbs.ports import ReadDesk
from extender.wiring.core import build_core, reader
from extender.wiring.source import Shadow


def folder_desk(settings: Settings, version: str, path: Path) -> tuple[ReadDesk, Sequence[Skipped]]:
    """The desk, and the documents that were not used. Raises SettingsError when there is nothing to read."""
    manifests = load(path)
    core = build_core(settings, version)
    MemoryApi(core.ledger).load(manifests.objects, [kind.name for kind in REQUIRED])
    return reader(core, Shadow(settings)), manifests.skipped
