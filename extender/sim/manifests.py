"""Ordinary Kubernetes YAML as wire structs: kind List, server fields, and older resource.k8s.io shapes.

A document that is no Kubernetes object is named and skipped, never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from extender.api.core import Namespace, Node, Pod
from extender.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from extender.model.errors import SettingsError
from extender.sim.older import to_v1

SHAPES: Mapping[str, type[Any]] = {
    "Node": Node,
    "Pod": Pod,
    "Namespace": Namespace,
    "ResourceSlice": ResourceSlice,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "DeviceClass": DeviceClass,
    "DeviceTaintRule": DeviceTaintRule,
}
NAMESPACED = frozenset({"Pod", "ResourceClaim", "ResourceClaimTemplate"})


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that was not used: where it stands, and why."""

    where: str
    why: str


@dataclass(slots=True)
class Manifests:
    """Objects by kind, in the order of files and documents, and what was left out."""

    objects: dict[str, list[Any]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def load(path: Path) -> Manifests:
    """Read a YAML file, or all of a folder in the order of their names, folders within included.

    Raises SettingsError when there is nothing to read.
    """
    files = sorted(p for p in path.rglob("*") if p.suffix in {".yaml", ".yml"}) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise SettingsError(f"{path}: no YAML file there")
    found = Manifests()
    for file in files:
        try:
            documents = list(yaml.load_all(file.read_text("utf-8"), Loader=_loader()))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            found.skipped.append(Skipped(str(file), f"not YAML: {' '.join(str(error).split())}"))
            continue
        for number, document in enumerate(documents, 1):
            _read(document, f"{file}, document {number}", found)
    return found


def _loader() -> type[yaml.SafeLoader]:
    """The C loader where libyaml is there: a fleet of 5,000 nodes is long."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _read(document: Any, where: str, into: Manifests) -> None:
    if document is None:
        return
    for item, place in _items(document, where):
        kind = item.get("kind") if isinstance(item, dict) else None
        if not isinstance(kind, str) or not isinstance(item.get("apiVersion"), str):
            into.skipped.append(Skipped(place, "no Kubernetes object: kind or apiVersion is missing"))
            continue
        shape = SHAPES.get(kind)
        if shape is None or not _group_fits(kind, item["apiVersion"]):
            into.skipped.append(Skipped(place, f"{item['apiVersion']} {kind} is not used here"))
            continue
        try:
            obj = msgspec.convert(_plain(to_v1(item)), shape)
        except msgspec.ValidationError as error:
            into.skipped.append(Skipped(place, f"{kind}: {error}"))
            continue
        if not obj.metadata.name:
            into.skipped.append(Skipped(place, f"{kind}: metadata.name is missing"))
            continue
        if kind in NAMESPACED and not obj.metadata.namespace:
            obj = msgspec.structs.replace(
                obj, metadata=msgspec.structs.replace(obj.metadata, namespace="default")
            )
        into.objects.setdefault(kind, []).append(obj)


def _items(document: Any, where: str) -> Iterator[tuple[Any, str]]:
    """The document, or what it lists."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list):
        for number, item in enumerate(document["items"]):
            if isinstance(item, dict) and kind != "List":
                item = {  # noqa: PLW2901 - items of a typed list may leave these two out
                    "kind": kind.removesuffix("List"),
                    "apiVersion": document.get("apiVersion"),
                    **item,
                }
            yield item, f"{where}, item {number}"
    else:
        yield document, where


def _group_fits(kind: str, api_version: str) -> bool:
    group = api_version.rpartition("/")[0]
    return group == ("" if kind in {"Node", "Pod", "Namespace"} else "resource.k8s.io")


def _plain(value: Any) -> Any:
    """Null fields left out, and YAML's dates as the text they were: the wire knows neither."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
