"""A core over Kubernetes YAML in a folder, for the command line: no server, no loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from extender.model.device import DeviceFacts
from extender.settings import Settings
from extender.sim.manifests import Skipped, load, missing_nodes
from extender.sim.memory import MemoryApi
from extender.verbs.ports import ReadDesk
from extender.wiring.core import Core, build_core, reader
from extender.wiring.source import WATCHED, Shadow


def folder_desk(settings: Settings, version: str, path: Path) -> tuple[ReadDesk, Sequence[Skipped]]:
    """The desk, and the documents that were not used. Raises SettingsError when there is nothing to read."""
    core, skipped = folder_core(settings, version, path)
    return reader(core, Shadow(settings)), skipped


def folder_core(settings: Settings, version: str, path: Path) -> tuple[Core, Sequence[Skipped]]:
    """The core that knows what the folder holds. Raises as `folder_desk`."""
    manifests = load(path)
    core = build_core(settings, version)
    # Drivers' examples come without Node objects: such a node is shown as one that is not ready.
    manifests.objects.setdefault("Node", []).extend(missing_nodes(manifests.objects))
    MemoryApi(core.ledger).load(manifests.objects, WATCHED)
    return core, manifests.skipped


def published_devices(core: Core) -> list[tuple[str, DeviceFacts]]:
    """Every device of a complete pool, by "driver/pool/device", with what a selector can see of it."""
    topology = core.ledger.snapshot().topology
    table = topology.table
    rows = [*topology.order.tolist(), *topology.wide_rows.tolist()]
    return [(str(table.ids[row]), table.facts[row]) for row in rows]
