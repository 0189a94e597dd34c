"""A core over Kubernetes YAML in a folder, for the command line: no server, no loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from extender.api.core import Node
from extender.api.meta import ObjectMeta
from extender.kube.kinds import REQUIRED
from extender.model.device import DeviceFacts
from extender.settings import Settings
from extender.sim.manifests import Skipped, load
from extender.sim.memory import MemoryApi
from extender.verbs.ports import ReadDesk
from extender.wiring.core import Core, build_core, reader
from extender.wiring.source import Shadow


def folder_desk(settings: Settings, version: str, path: Path) -> tuple[ReadDesk, Sequence[Skipped]]:
    """The desk, and the documents that were not used. Raises SettingsError when there is nothing to read."""
    core, skipped = folder_core(settings, version, path)
    return reader(core, Shadow(settings)), skipped


def folder_core(settings: Settings, version: str, path: Path) -> tuple[Core, Sequence[Skipped]]:
    """The core that knows what the folder holds. Raises as `folder_desk`."""
    manifests = load(path)
    core = build_core(settings, version)
    objects = {**manifests.objects, "Node": _nodes(manifests.objects)}
    MemoryApi(core.ledger).load(objects, [kind.name for kind in REQUIRED])
    return core, manifests.skipped


def _nodes(objects: Mapping[str, Sequence[Any]]) -> list[Node]:
    """The folder's nodes, and those that its slices name: drivers' examples come without Node objects."""
    nodes = list(objects.get("Node", ()))
    known = {node.metadata.name for node in nodes}
    named = {published.spec.node_name for published in objects.get("ResourceSlice", ())} - known - {None, ""}
    return [*nodes, *(Node(metadata=ObjectMeta(name=name, uid=name)) for name in sorted(named))]


def published_devices(core: Core) -> list[tuple[str, DeviceFacts]]:
    """Every device of a complete pool, by "driver/pool/device", with what a selector can see of it."""
    topology = core.ledger.snapshot().topology
    table = topology.table
    rows = [*topology.order.tolist(), *topology.wide_rows.tolist()]
    return [(str(table.ids[row]), table.facts[row]) for row in rows]
