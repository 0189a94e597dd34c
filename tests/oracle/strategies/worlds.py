"""Whole allocation cases: features, what is in use, node, claims, classes and slices.

The field names are those of the conformance cases, so a case found here can be kept as one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle.strategies.claims import claims, classes, crowded_claims
from tests.oracle.strategies.devices import Object
from tests.oracle.strategies.draw import Mood, chance, pick, some, weighted
from tests.oracle.strategies.pools import crowd, slices
from tests.oracle.strategies.quantities import small_quantity

if TYPE_CHECKING:
    import random

_ON = (
    "adminAccess",
    "prioritizedList",
    "partitionableDevices",
    "deviceTaints",
    "deviceBindingAndStatus",
    "consumableCapacity",
    "fractionalCapacityRange",
)
_ALPHA = ("listTypeAttributes", "derivedAttributes", "optionalNodeOperations", "compatibilityGroups")


def features(rng: random.Random) -> dict[str, bool]:
    """Which features are on: mostly the defaults of 1.37, sometimes fewer, sometimes alpha ones too."""
    enabled = dict.fromkeys(_ON, True) | dict.fromkeys(_ALPHA, False)
    kind = weighted(rng, [(58, "default"), (14, "fewer"), (12, "alpha"), (9, "all"), (3, "none"), (4, "any")])
    if kind == "fewer":
        enabled[pick(rng, _ON)] = False
        if chance(rng, 40):
            enabled[pick(rng, _ON)] = False
    elif kind == "alpha":
        enabled.update(dict.fromkeys(some(rng, _ALPHA), True))
    elif kind == "all":
        enabled.update(dict.fromkeys(_ALPHA, True))
    elif kind == "any":
        enabled = {name: chance(rng, 60) for name in enabled}
    elif kind == "none":
        enabled = dict.fromkeys(enabled, False)
    return enabled


def world(rng: random.Random) -> Object:
    """One allocation case."""
    enabled = features(rng)
    theme = weighted(rng, [(70, ""), (18, "match"), (12, "counters")])
    if theme == "match" and chance(rng, 40):
        enabled["listTypeAttributes"] = True
    mood = Mood(enabled, rough=chance(rng, 40), sharing=chance(rng, 35), theme=theme)
    crowded = chance(rng, 3)
    published = crowd(rng) if crowded else slices(rng, mood)
    node: Object = {
        "name": "node-1",
        "labels": {"region": "region-1", "planet": "earth", "cores": pick(rng, ("8", "4", "many"))},
    }
    if chance(rng, 50 if enabled["optionalNodeOperations"] else 2):
        node["declaredFeatures"] = ["DRAOptionalNodeOperations"]
    return {
        "features": enabled,
        "allocatedState": _in_use(rng, [] if crowded else published),
        "node": node,
        "claimsInNamespaceOrder": crowded_claims(rng) if crowded else claims(rng, mood),
        "classes": classes(rng, mood),
        "slices": published,
    }


def _in_use(rng: random.Random, published: list[Object]) -> Object:
    state: Object = {"allocatedDevices": [], "allocatedSharedDeviceIDs": [], "aggregatedCapacity": []}
    if chance(rng, 50):
        return state
    busy = pick(rng, (10, 30, 50))
    for entry in published:
        spec = entry["spec"]
        for device in spec.get("devices", ()):
            identity = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            if device.get("allowMultipleAllocations"):
                _share(rng, state, identity, device)
            elif chance(rng, busy):
                state["allocatedDevices"].append(identity)
    if chance(rng, 5):
        state["allocatedDevices"].append({"driver": "driver-a", "pool": "pool-1", "device": "gone"})
    return state


def _share(rng: random.Random, state: Object, identity: Object, device: Object) -> None:
    if not chance(rng, 40):
        return
    kind = weighted(rng, [(70, "both"), (15, "id"), (10, "capacity"), (5, "dedicated")])
    if kind == "dedicated":
        state["allocatedDevices"].append(identity)
    if kind in {"both", "id"}:
        for number in range(pick(rng, (1, 1, 2))):
            share = f"bbbbbbbb-bbbb-bbbb-bbbb-{number:012d}"
            state["allocatedSharedDeviceIDs"].append({**identity, "shareID": share})
    if kind in {"both", "capacity"} and "capacity" in device:
        consumed = {name: small_quantity(rng) for name in device["capacity"]}
        state["aggregatedCapacity"].append({**identity, "consumedCapacity": consumed})
