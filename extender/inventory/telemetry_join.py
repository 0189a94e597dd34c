"""Which row of telemetry speaks of which published device.

By uuid where one is published, else by PCI address, else by the name `gpu-<minor>`; a MIG device without
a uuid by its parent's minor number, profile and placement, which its name has (`gpu-0-mig-1g12gb-19-0`).
Never: changes the store or the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.api.telemetry import Device, normal_pci
from extender.inventory.telemetry import NodeTelemetry, TelemetryStore
from extender.inventory.telemetry_columns import Rows
from extender.model.device import DeviceFacts, DeviceID

Published = tuple[int, DeviceID, DeviceFacts]
_PCI_ATTRIBUTES: Final = ("resource.kubernetes.io/pciBusID", "pciBusID", "pciAddr", "pciAddress")
_GPU_NAME: Final = re.compile(r"gpu-(\d+)")
_MIG_NAME: Final = re.compile(r"gpu-(\d+)-mig-[0-9a-z.]+(?:-me)?-(\d+)-(\d+)")


def pool_is_node(device: DeviceID) -> str:
    """The node of a device of a node-local pool, as the NVIDIA driver names them."""
    return device.pool


@dataclass(frozen=True, slots=True)
class Joined:
    """Arrays by the ledger's row, -1 where there is nothing; and what did not meet.

    `gpus` is the row of the whole GPU under a device: its own, or a MIG device's parent, cut or not yet cut.
    """

    rows: Rows
    gpus: Rows
    published_not_seen: tuple[DeviceID, ...]
    seen_not_published: tuple[tuple[str, str], ...]  # (node, uuid)


class _NodeIndex:
    def __init__(self, node: NodeTelemetry, store: TelemetryStore) -> None:
        self.uuids = node.rows
        self.pci: dict[str, int] = {}
        self.minors: dict[int, int] = {}
        self.migs: dict[tuple[int, int, int], int] = {}
        for row in node.rows.values():
            device = store.device(row)
            if device is not None:
                self._add(row, device)

    def _add(self, row: int, device: Device) -> None:
        if device.mig is None:
            if device.pci:
                self.pci[device.pci] = row
            if isinstance(device.minor, int):
                self.minors[device.minor] = row
            return
        minor, profile, start = device.minor, device.mig.profile, device.mig.start
        if isinstance(minor, int) and isinstance(profile, int) and isinstance(start, int):
            self.migs[minor, profile, start] = row

    def find(self, name: str, facts: DeviceFacts) -> int:
        uuid = _text(facts, "uuid")
        if uuid:
            return self.uuids.get(uuid, -1)  # another GPU at the same address is not this one
        mig = _MIG_NAME.fullmatch(name)
        if mig:
            return self.migs.get((int(mig[1]), int(mig[2]), int(mig[3])), -1)
        for attribute in _PCI_ATTRIBUTES:
            address = _text(facts, attribute)
            if address:
                return self.pci.get(normal_pci(address), -1)
        gpu = _GPU_NAME.fullmatch(name)
        return self.minors.get(int(gpu[1]), -1) if gpu else -1

    def find_gpu(self, row: int, name: str, facts: DeviceFacts, store: TelemetryStore) -> int:
        device = store.device(row)
        if device is not None:
            return row if device.mig is None else self.uuids.get(device.mig.parent, -1)
        parent = _text(facts, "parentUUID")
        if parent:
            return self.uuids.get(parent, -1)
        mig = _MIG_NAME.fullmatch(name)
        return self.minors.get(int(mig[1]), -1) if mig else -1


@dataclass(frozen=True, slots=True)
class NodeJoined:
    """One node's part: (ledger row, row, row of the GPU) a device, -1 for nothing; and what did not meet."""

    found: tuple[tuple[int, int, int], ...]
    published_not_seen: tuple[DeviceID, ...]
    seen_not_published: tuple[str, ...]  # uuids


def join_node(node: NodeTelemetry, store: TelemetryStore, devices: Iterable[Published]) -> NodeJoined:
    """Join the published devices of one node to the rows of the store, as it stands."""
    index = _NodeIndex(node, store)
    found: list[tuple[int, int, int]] = []
    unseen: list[DeviceID] = []
    for ledger_row, device, facts in devices:
        row = index.find(device.device, facts)
        if row < 0:
            unseen.append(device)
        found.append((ledger_row, row, index.find_gpu(row, device.device, facts, store)))
    met = {row for _, *pair in found for row in pair}
    unpublished = tuple(uuid for uuid, row in node.rows.items() if row not in met)
    return NodeJoined(tuple(found), tuple(unseen), unpublished)


def join(
    store: TelemetryStore,
    devices: Iterable[Published],
    node_of: Callable[[DeviceID], str] = pool_is_node,
) -> Joined:
    """Join published devices (ledger row, id, facts) to the rows of the store, as it stands."""
    by_node: dict[str, list[Published]] = {}
    for published in devices:
        by_node.setdefault(node_of(published[1]), []).append(published)
    found: list[tuple[int, int, int]] = []
    unseen: list[DeviceID] = []
    unpublished: list[tuple[str, str]] = []
    for name, held in by_node.items():
        node = store.node(name)
        if node is None:
            found += ((row, -1, -1) for row, _, _ in held)
            unseen += (device for _, device, _ in held)
    for node in store.nodes():
        joined = join_node(node, store, by_node.get(node.name, ()))
        found += joined.found
        unseen += joined.published_not_seen
        unpublished += ((node.name, uuid) for uuid in joined.seen_not_published)
    rows, gpus = _arrays(found)
    return Joined(rows, gpus, tuple(unseen), tuple(unpublished))


def _arrays(found: list[tuple[int, int, int]]) -> tuple[Rows, Rows]:
    size = 1 + max((row for row, _, _ in found), default=-1)
    rows, gpus = np.full(size, -1, dtype=np.int32), np.full(size, -1, dtype=np.int32)
    if found:
        table = np.array(found, dtype=np.int32)
        rows[table[:, 0]], gpus[table[:, 0]] = table[:, 1], table[:, 2]
    return rows, gpus


def _text(facts: DeviceFacts, name: str) -> str:
    attribute = facts.attributes.get(name)
    if attribute is None and "/" not in name:
        attribute = facts.attributes.get(f"{facts.driver}/{name}")
    return (attribute.string or "") if attribute is not None else ""
