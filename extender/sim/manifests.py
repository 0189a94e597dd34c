"""Ordinary Kubernetes YAML as wire structs: kind List, server fields, and older resource.k8s.io shapes.

A document that is no Kubernetes object, or that an API server would not take, is named and skipped, never
guessed at. What an API server fills in is filled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from extender.api.core import Namespace, Node, Pod
from extender.api.meta import ObjectMeta
from extender.api.quantity import QuantityError
from extender.api.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from extender.inventory.pods import counted_requests
from extender.inventory.requests import quantity_milli
from extender.model.errors import SettingsError
from extender.sim.defaults import defaulted
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
SUFFIXES = frozenset({".yaml", ".yml"})
CORE = frozenset({"Node", "Pod", "Namespace"})
DRA_VERSIONS = frozenset({"v1", "v1beta2", "v1beta1", "v1alpha3"})
"""Versions of resource.k8s.io that `older` can read; v1alpha2 was another API."""

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


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
    files = [path]
    if path.is_dir():
        files = sorted(found for found in path.rglob("*") if found.suffix in SUFFIXES and found.is_file())
    if not files or not files[0].exists():
        raise SettingsError(f"{path}: no YAML file there")
    into = Manifests()
    loader = _loader()
    for file in files:
        try:
            documents = list(yaml.load_all(file.read_text("utf-8"), Loader=loader))
        except OSError as error:
            into.skipped.append(Skipped(str(file), f"can't be read: {error.strerror}"))
        except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
            into.skipped.append(Skipped(str(file), f"not YAML: {' '.join(str(error).split())}"))
        else:
            for number, document in enumerate(documents, 1):
                _read(document, f"{file}, document {number}", into)
    return into


def missing_nodes(objects: Mapping[str, Sequence[Any]]) -> list[Node]:
    """A bare Node for each name that slices belong to and no Node has, by name.

    What a driver published often comes without its nodes; of these no more than name and devices is known.
    """
    known = {node.metadata.name for node in objects.get("Node", ())}
    named: set[str | None] = set()
    for published in objects.get("ResourceSlice", ()):
        named.add(published.spec.node_name)
        named.update(device.node_name for device in published.spec.devices or ())
    names = sorted(name for name in named if name and name not in known)
    return [Node(metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name})) for name in names]


def _loader() -> type[yaml.SafeLoader]:
    """The C loader where libyaml is there, for a fleet of 5,000 nodes is long; dates stay text."""
    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag != _TIMESTAMP]
        for first, known in base.yaml_implicit_resolvers.items()
    }
    return type("_Loader", (base,), {"yaml_implicit_resolvers": resolvers})


def _read(document: Any, where: str, into: Manifests) -> None:
    if document is None:
        return
    for item, place in _items(document, where):
        kind = item.get("kind") if isinstance(item, dict) else None
        if not isinstance(kind, str) or not isinstance(item.get("apiVersion"), str):
            into.skipped.append(Skipped(place, "no Kubernetes object: kind or apiVersion is missing"))
            continue
        shape = SHAPES.get(kind)
        if shape is None or not _is_known(kind, item["apiVersion"]):
            into.skipped.append(Skipped(place, f"{item['apiVersion']} {kind} is not used here"))
            continue
        try:
            obj = msgspec.convert(_without_nulls(to_v1(item)), shape)
            _look_at_quantities(obj)
        except (msgspec.ValidationError, QuantityError, RecursionError) as error:
            into.skipped.append(Skipped(place, f"{kind}: {error}"))
            continue
        if not obj.metadata.name:
            into.skipped.append(Skipped(place, f"{kind}: metadata.name is missing"))
            continue
        into.objects.setdefault(kind, []).append(defaulted(kind, obj))


def _look_at_quantities(obj: Any) -> None:
    """Raise QuantityError for a quantity that is none; an API server would not have taken it."""
    if isinstance(obj, Node):
        for value in (obj.status.allocatable or {}).values():
            quantity_milli(value)
    elif isinstance(obj, Pod):
        counted_requests(obj)
    elif isinstance(obj, ResourceSlice):
        for device in obj.spec.devices or ():
            for capacity in (device.capacity or {}).values():
                quantity_milli(capacity.value)


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


def _is_known(kind: str, api_version: str) -> bool:
    group, _, version = api_version.rpartition("/")
    if kind in CORE:
        return api_version == "v1"
    return group == "resource.k8s.io" and version in DRA_VERSIONS


def _without_nulls(value: Any) -> Any:
    """Null fields left out, as JSON's omitempty has it, and keys as text."""
    if isinstance(value, dict):
        return {str(key): _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
