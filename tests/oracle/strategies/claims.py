"""Claims and classes for the small worlds: every kind of request, constraint and config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle.strategies.devices import Object, toleration
from tests.oracle.strategies.draw import Mood, chance, pick, some, weighted
from tests.oracle.strategies.pools import DRIVERS
from tests.oracle.strategies.quantities import rough_quantity, small_quantity

if TYPE_CHECKING:
    import random

_SELECTORS = (
    (30, "true"),
    (10, 'device.driver == "driver-a"'),
    (8, 'device.attributes[device.driver].?model.orValue("none") == "a"'),
    (8, "has(device.attributes[device.driver].numa) && device.attributes[device.driver].numa == 0"),
    (6, "device.allowMultipleAllocations"),
    (8, 'device.attributes["rack.example.com"].?rack.orValue("") != "b"'),
    (2, "false"),
)
_ROUGH = (
    (6, 'device.attributes["driver-a"].model == "a"'),
    (4, 'device.attributes[device.driver].version.isGreaterThan(semver("0.9.0"))'),
    (4, 'device.attributes[device.driver].healthy || device.driver == "driver-b"'),
    (5, 'device.capacity[device.driver].memory.compareTo(quantity("2")) >= 0'),
    (2, 'device.attributes["driver-a"].nope == 1'),
    (1, "device.attributes[device.driver].numa"),
    (1, "noSuchVariable"),
    (1, "device.driver ="),
    (1, "1 + 1"),
)
_CONSTRAINTS = {
    "": ((60, 0), (30, 1), (10, 2)),
    "match": ((5, 0), (70, 1), (25, 2)),
    "counters": ((85, 0), (15, 1)),
}
"""How many constraints a claim has, weighted, by theme."""
_COUNTS = {
    "": ((72, 1), (19, 2), (7, 3), (2, 4)),
    "match": ((40, 1), (35, 2), (20, 3), (5, 4)),
    "counters": ((65, 1), (25, 2), (10, 3)),
}
"""How many devices a request asks for, weighted, by theme."""
_MATCHED = ("model", "numa", "version", "healthy")


def classes(rng: random.Random, mood: Mood) -> list[Object]:
    """Classes by the names that the claims use; their selectors mostly pick a driver."""
    made = [
        _device_class("class-any", []),
        _device_class("class-a", ['device.driver == "driver-a"']),
        _device_class("class-b", ['device.driver == "driver-b"']),
    ]
    if chance(rng, 25):
        made[0]["spec"]["selectors"] = [_selector(rng, mood)]
    for entry in made:
        if chance(rng, 15):
            entry["spec"]["config"] = [
                _opaque(f"{entry['metadata']['name']}-{n}") for n in range(pick(rng, (1, 1, 2)))
            ]
    return made


def _device_class(name: str, expressions: list[str]) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": text}} for text in expressions]},
    }


def crowded_claims(rng: random.Random) -> list[Object]:
    """One claim whose alternatives together come near the limit of 32 devices, or pass it."""
    requests: list[Object] = []
    for number in range(pick(rng, (1, 2, 3))):
        counts = [pick(rng, (1, 2, 8, 12, 16, 20, 31, 32, 33)) for _ in range(pick(rng, (1, 2, 3)))]
        wanted: list[Object] = [
            {"deviceClassName": "class-any", "allocationMode": "ExactCount", "count": count}
            for count in counts
        ]
        if chance(rng, 10):
            wanted[-1] = {"deviceClassName": "class-any", "allocationMode": "All"}
        name = f"req-{number}"
        if len(wanted) == 1:
            requests.append({"name": name, "exactly": wanted[0]})
        else:
            subs = [{"name": f"sub-{n}", **entry} for n, entry in enumerate(wanted)]
            requests.append({"name": name, "firstAvailable": subs})
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "claim-0"},
            "spec": {"devices": {"requests": requests}},
        }
    ]


def claims(rng: random.Random, mood: Mood) -> list[Object]:
    """One to three claims, in the order in which they are allocated."""
    return [_claim(rng, f"claim-{n}", mood) for n in range(weighted(rng, [(70, 1), (25, 2), (5, 3)]))]


def _claim(rng: random.Random, name: str, mood: Mood) -> Object:
    requests = [_request(rng, f"req-{n}", mood) for n in range(weighted(rng, [(60, 1), (30, 2), (10, 3)]))]
    if mood.odd(rng, 1):
        requests = []
    names = _request_names(requests)
    devices: Object = {"requests": requests}
    constraints = [_constraint(rng, names, mood) for _ in range(weighted(rng, _CONSTRAINTS[mood.theme]))]
    if constraints:
        devices["constraints"] = constraints
    config = [
        {**_opaque(f"{name}-{n}"), "requests": _affected(rng, names)}
        for n in range(weighted(rng, [(75, 0), (18, 1), (7, 2)]))
    ]
    if config:
        devices["config"] = config
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": devices},
    }


def _request_names(requests: list[Object]) -> list[str]:
    names = []
    for request in requests:
        names.append(request["name"])
        names.extend(f"{request['name']}/{sub['name']}" for sub in request.get("firstAvailable", ()))
    return names


def _affected(rng: random.Random, names: list[str], all_of_them: int = 40) -> list[str]:
    return [] if chance(rng, all_of_them) else some(rng, names)


def _request(rng: random.Random, name: str, mood: Mood) -> Object:
    if chance(rng, 27 if mood.features["prioritizedList"] else 3):
        many = pick(rng, (1, 2, 2, 3))
        return {
            "name": name,
            "firstAvailable": [{"name": f"sub-{n}", **_wanted(rng, mood)} for n in range(many)],
        }
    wanted = _wanted(rng, mood)
    if chance(rng, 7 if mood.features["adminAccess"] else 1):
        wanted["adminAccess"] = chance(rng, 85)
    return {"name": name, "exactly": wanted}


def _wanted(rng: random.Random, mood: Mood) -> Object:
    wanted: Object = {"deviceClassName": weighted(rng, [(90, "class-any"), (6, "class-a"), (4, "class-b")])}
    if mood.odd(rng, 3):
        wanted["deviceClassName"] = pick(rng, ("class-x", ""))
    mode = weighted(rng, [(90, "ExactCount"), (10, "All")])
    if mood.odd(rng, 1):
        mode = pick(rng, ("Some", ""))
    wanted["allocationMode"] = mode
    if mode == "ExactCount":
        wanted["count"] = weighted(rng, _COUNTS[mood.theme])
        if mood.odd(rng, 4):
            wanted["count"] = pick(rng, (0, 33, 20, 9223372036854775807))
    if chance(rng, 35):
        wanted["selectors"] = [_selector(rng, mood) for _ in range(pick(rng, (1, 1, 1, 2)))]
    if chance(rng, 30):
        wanted["tolerations"] = [toleration(rng) for _ in range(pick(rng, (1, 1, 2)))]
    if chance(rng, 35 if mood.sharing and mood.features["consumableCapacity"] else 1):
        names = pick(rng, (["memory"], ["memory", "lanes"], ["lanes"]))
        if chance(rng, 3):
            names = [f"{DRIVERS[0]}/memory"]
        wanted["capacity"] = {"requests": {key: _asked(rng, mood) for key in names}}
    if mood.odd(rng, 2):
        wanted.update(pick(rng, ({"capacity": {}}, {"capacity": {"requests": {}}}, {"selectors": []})))
    if mood.odd(rng, 1) or (mood.features["derivedAttributes"] and chance(rng, 30)):
        wanted["derivedAttributes"] = [_derived(rng)]
    return wanted


def _asked(rng: random.Random, mood: Mood) -> str:
    if mood.odd(rng, 20):
        return rough_quantity(rng)
    return small_quantity(rng)


def _selector(rng: random.Random, mood: Mood) -> Object:
    if mood.odd(rng, 1):
        return {}
    return {"cel": {"expression": weighted(rng, _ROUGH if mood.odd(rng, 35) else _SELECTORS)}}


def _derived(rng: random.Random) -> Object:
    expression = pick(
        rng,
        (
            "device.attributes[device.driver].model",
            "device.attributes[device.driver].?numa.orValue(0)",
            '"a"',
            "device.attributes[device.driver].numa % 2 == 0",
            "device.attributes[device.driver].version",
            '["a", "b"]',
            "[1, 2]",
            "[true]",
            "[]",
            "[device.attributes[device.driver].version]",
            "[dyn(1), dyn('a')]",
            "dyn(null)",
            "1.5",
            "noSuchVariable",
        ),
    )
    return {
        "name": pick(rng, ("driver-a/model", "driver-b/model", "example.com/derived")),
        "expression": expression,
    }


def _constraint(rng: random.Random, names: list[str], mood: Mood) -> Object:
    attribute = weighted(
        rng,
        [
            (25, f"{pick(rng, DRIVERS)}/{pick(rng, _MATCHED)}"),
            (70, "rack.example.com/rack"),
            (3, "example.com/derived"),
            (2, "driver-a/nope"),
            (1, "model"),
        ],
    )
    made: Object = {"requests": _affected(rng, names, 75 if mood.theme == "match" else 40)}
    kind = pick(rng, ("matchAttribute", "matchAttribute", "distinctAttribute"))
    made["futureAttribute" if mood.odd(rng, 2) else kind] = attribute
    return made


def _opaque(mark: str) -> Object:
    return {"opaque": {"driver": DRIVERS[0], "parameters": {"mark": mark}}}
