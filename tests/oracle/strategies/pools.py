"""Pools as drivers publish them: complete, incomplete, outdated, invalid, local, shared, partitioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle.strategies.devices import Object, device, placement
from tests.oracle.strategies.draw import Mood, chance, pick, some, weighted

if TYPE_CHECKING:
    import random

DRIVERS = ("driver-a", "driver-b")
POOLS = ("pool-1", "pool-2")
_SIZES = {
    "": ((15, 1), (25, 2), (28, 3), (28, 4), (4, 0)),
    "match": ((5, 2), (25, 3), (40, 4), (30, 5)),
    "counters": ((5, 1), (15, 2), (30, 3), (30, 4), (20, 5)),
}
"""How many devices a slice has, weighted, by theme."""
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def slices(rng: random.Random, mood: Mood) -> list[Object]:
    """The slices of up to three pools, in a listing order of their own; pool names repeat across drivers."""
    pools = [(driver, pool) for driver in DRIVERS for pool in POOLS]
    first = rng.randrange(len(pools))
    made: list[Object] = []
    for at in range(weighted(rng, [(40, 1), (38, 2), (20, 3), (2, 0)])):
        driver, pool = pools[(first + at * pick(rng, (1, 2))) % len(pools)]
        made.extend(_pool(rng, driver, pool, mood))
    for number in range(len(made) - 1, 0, -1):
        other = number - rng.randrange(number + 1) if chance(rng, 50) else number
        made[number], made[other] = made[other], made[number]
    return made


def crowd(rng: random.Random) -> list[Object]:
    """One pool with more plain devices than one claim may hold: enough that the limit alone decides."""
    many = pick(rng, (33, 40, 64))
    spec = {"nodeName": "node-1", "devices": [{"name": f"device-{n}"} for n in range(many)]}
    return [_slice(rng, 0, DRIVERS[0], POOLS[0], 1, 1, spec)]


def _pool(rng: random.Random, driver: str, pool: str, mood: Mood) -> list[Object]:
    generation = pick(rng, (1, 1, 2))
    counter_sets = _counter_set_names(rng, mood)
    shape: Object = {
        "counterSets": counter_sets,
        "shared": mood.sharing and chance(rng, 85),
        "binding": chance(rng, 12),
        "perDevice": False,
    }
    specs, place = _device_specs(rng, driver, shape, mood)
    if counter_sets:
        specs.extend(_counter_slices(rng, counter_sets, place, mood))
    if mood.odd(rng, 2):
        for field in _PLACES:
            specs[0].pop(field, None)  # no place that this version knows
    if mood.odd(rng, 4) and len(specs) > 1 and "sharedCounters" in specs[-1]:
        specs[0]["sharedCounters"] = specs.pop()["sharedCounters"]
    count = len(specs) + (pick(rng, (1, 1, -1)) if mood.odd(rng, 12) else 0)
    if mood.odd(rng, 5):
        specs[0].update(pick(rng, ({"perDeviceNodeSelection": False}, {"allNodes": False}, {"nodeName": ""})))
    named = [_slice(rng, at, driver, pool, generation, count, spec) for at, spec in enumerate(specs)]
    if mood.odd(rng, 5):
        for entry in named:
            entry["metadata"]["name"] = named[0]["metadata"]["name"]
    if chance(rng, 5):
        named.append(_other_generation(rng, named[0], generation))
    return named


def _device_specs(rng: random.Random, driver: str, shape: Object, mood: Mood) -> tuple[list[Object], Object]:
    """The parts of the specs that hold devices, and where the last one is placed."""
    place = placement(rng, mood)
    specs: list[Object] = []
    number = 0
    for _ in range(weighted(rng, [(60, 1), (30, 2), (10, 3)])):
        if specs and mood.theme == "counters" and chance(rng, 40):
            place = {"nodeName": "node-2"}  # its devices charge the same counters from elsewhere
        elif chance(rng, 20):
            place = placement(rng, mood)
        shape["perDevice"] = chance(rng, 10)
        spec: Object = {"perDeviceNodeSelection": True} if shape["perDevice"] else dict(place)
        devices = []
        for _ in range(weighted(rng, _SIZES[mood.theme])):
            number += 0 if number and mood.odd(rng, 3) else 1
            devices.append(device(rng, f"device-{number}", driver, mood, shape))
        spec["devices"] = devices
        if mood.odd(rng, 4) or (mood.features["optionalNodeOperations"] and chance(rng, 15)):
            spec["skipNodeOperations"] = ["*"]
        specs.append(spec)
    return specs, place


def _slice(
    rng: random.Random, at: int, driver: str, pool: str, generation: int, count: int, spec: Object
) -> Object:
    number = pick(rng, (at + 1, at + 1, 10 - at))
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{driver}-{pool}-slice-{number}-{at}"},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            **spec,
        },
    }


def _other_generation(rng: random.Random, model: Object, generation: int) -> Object:
    """A slice of the same pool that is newer or older, for this node or for another."""
    spec = {key: value for key, value in model["spec"].items() if key not in _PLACES}
    spec["pool"] = {**spec["pool"], "generation": generation + pick(rng, (1, 1, -1)), "resourceSliceCount": 1}
    spec.update(pick(rng, ({"nodeName": "node-2"}, {"nodeName": "node-1"}, {"allNodes": True})))
    return {**model, "metadata": {"name": f"{model['metadata']['name']}-other"}, "spec": spec}


def _counter_set_names(rng: random.Random, mood: Mood) -> list[str]:
    if not chance(rng, {"counters": 90, "match": 10}.get(mood.theme, 25)):
        return []
    return some(rng, ("set-1", "set-2")) or ["set-1"]


def _counter_slices(rng: random.Random, names: list[str], place: Object, mood: Mood) -> list[Object]:
    sets = [
        {
            "name": name,
            "counters": {
                counter: {"value": pick(rng, ("2", "3", "4", "1500m", "0"))}
                for counter in ("slots", "memory")
            },
        }
        for name in names
    ]
    where = place if chance(rng, 85) else placement(rng, mood)
    if len(sets) > 1 and chance(rng, 50):
        if mood.odd(rng, 15):
            sets[1]["name"] = sets[0]["name"]
        return [{**where, "sharedCounters": [entry]} for entry in sets]
    return [{**where, "sharedCounters": sets}]
