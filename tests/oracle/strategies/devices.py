"""Devices of the small worlds: few names and few values, so that they collide and constraints bite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.oracle.strategies.draw import Mood, chance, pick, some, weighted
from tests.oracle.strategies.quantities import large_quantity, rough_quantity, small_quantity

if TYPE_CHECKING:
    import random

Object = dict[str, Any]

ATTRIBUTES = ("model", "numa", "healthy", "version", "rack.example.com/rack")
"""Published names; the driver's own come bare or with the driver's domain."""


_EMPTY: tuple[Object, ...] = (
    {"bindingConditions": []},
    {"consumesCounters": []},
    {"taints": []},
    {"attributes": {}},
    {"capacity": {}},
    {"allowMultipleAllocations": False},
    {"bindsToNode": True},
)
"""Members that say nothing, or nothing by themselves."""


def node_selector(rng: random.Random, mood: Mood) -> Object:
    """A node selector: mostly one term that the node meets, sometimes not, sometimes invalid."""
    terms = [_term(rng, mood) for _ in range(pick(rng, (0, 2, 2)) if mood.odd(rng, 12) else 1)]
    return {"nodeSelectorTerms": terms}


def _term(rng: random.Random, mood: Mood) -> Object:
    term: Object = {}
    expressions = [_expression(rng, mood) for _ in range(weighted(rng, [(80, 1), (16, 2), (4, 0)]))]
    if expressions:
        term["matchExpressions"] = expressions
    if chance(rng, 15):
        name = pick(rng, ("node-1", "node-1", "node-2"))
        term["matchFields"] = [
            {"key": "metadata.name", "operator": pick(rng, ("In", "In", "NotIn")), "values": [name]}
        ]
    return term


_BROKEN: tuple[tuple[str, str, list[str]], ...] = (
    ("cores", "Gt", ["four"]),
    ("region", "In", []),
    ("region", "Like", ["r"]),
)


def _expression(rng: random.Random, mood: Mood) -> Object:
    made: tuple[str, str, list[str]] = (
        pick(rng, _BROKEN)
        if mood.odd(rng, 8)
        else weighted(
            rng,
            [
                (50, ("region", "In", ["region-1"])),
                (12, ("region", "In", ["region-2", "region-1"])),
                (2, ("region", "In", ["region-2"])),
                (6, ("planet", "Exists", [])),
                (2, ("moon", "Exists", [])),
                (6, ("moon", "DoesNotExist", [])),
                (5, ("region", "NotIn", ["region-2"])),
                (3, ("moon", "NotIn", ["luna"])),
                (3, ("cores", "Gt", ["4"])),
                (2, ("cores", "Lt", ["4"])),
            ],
        )
    )
    key, operator, values = made
    expression: Object = {"key": key, "operator": operator}
    if values:
        expression["values"] = list(values)
    return expression


def placement(rng: random.Random, mood: Mood) -> Object:
    """Where a slice or device is available: the fields that say so."""
    return weighted(
        rng,
        [
            (64, {"nodeName": "node-1"}),
            (4, {"nodeName": "node-2"}),
            (18, {"allNodes": True}),
            (14, {}),
        ],
    ) or {"nodeSelector": node_selector(rng, mood)}


def device(rng: random.Random, name: str, driver: str, mood: Mood, shape: Object) -> Object:
    """One device; `shape` holds what the devices of the pool have in common."""
    made: Object = {"name": name}
    attributes = _attributes(rng, driver, mood)
    if attributes:
        made["attributes"] = attributes
    if chance(rng, 92 if shape["shared"] else 15):
        made["capacity"] = _capacity(rng, driver, mood)
    if shape["shared"] and chance(rng, 80):
        made["allowMultipleAllocations"] = True
    if shape["counterSets"] and chance(rng, 85):
        made["consumesCounters"] = _consumes(rng, shape["counterSets"], mood)
    if chance(rng, 9):
        made["taints"] = [_taint(rng) for _ in range(pick(rng, (1, 1, 2)))]
    if shape["binding"] and chance(rng, 60):
        made["bindingConditions"] = ["ready"]
        if chance(rng, 50):
            made["bindingFailureConditions"] = ["broken"]
        if chance(rng, 40):
            made["bindsToNode"] = True
    if mood.odd(rng, 3):
        made.update(pick(rng, _EMPTY))
    if shape["perDevice"]:
        made.update(placement(rng, mood))
    return made


def _attributes(rng: random.Random, driver: str, mood: Mood) -> Object:
    attributes: Object = {}
    lists = mood.features["listTypeAttributes"] or mood.odd(rng, 3)
    present = 100 if mood.theme == "match" else pick(rng, (95, 95, 70))
    for name in ATTRIBUTES:
        if not chance(rng, present):
            continue
        key = f"{driver}/{name}" if "/" not in name and chance(rng, 20) else name
        attributes[key] = _value(rng, name, mood, lists=lists)
    return attributes


_LISTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "numa": ("ints", (0, 1, 2)),
    "healthy": ("bools", (True, False)),
    "version": ("versions", ("1.0.0", "1.1.0", "2.0.0")),
}
_SCALARS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "numa": ("int", (0, 1)),
    "healthy": ("bool", (True, True, False)),
    "version": ("version", ("1.0.0", "1.0.0", "1.0.0+b", "2.0.0")),
}


def _value(rng: random.Random, name: str, mood: Mood, *, lists: bool) -> Object:
    if mood.odd(rng, 2):
        return pick(rng, ({}, {"version": "1.0"}))
    if mood.odd(rng, 10):
        name = pick(rng, ATTRIBUTES)  # another type than the other devices have
    if lists and chance(rng, 50):
        kind, values = _LISTS.get(name, ("strings", ("a", "b", "c")))
        return {kind: [pick(rng, values) for _ in range(pick(rng, (1, 2, 2, 3, 0)))]}
    kind, values = _SCALARS.get(name, ("string", ("a", "a", "b", "c")))
    return {kind: pick(rng, values)}


def _capacity(rng: random.Random, driver: str, mood: Mood) -> Object:
    names = pick(rng, (["memory"], ["memory", "lanes"], ["memory", "lanes"], ["lanes"]))
    if chance(rng, 4):
        names = [f"{driver}/{names[0]}", *names[1:]]
    return {name: _device_capacity(rng, mood) for name in names}


def _device_capacity(rng: random.Random, mood: Mood) -> Object:
    made: Object = {"value": large_quantity(rng)}
    if mood.odd(rng, 8):
        made["value"] = rough_quantity(rng)
    if chance(rng, 55):
        return made
    policy: Object = {}
    if chance(rng, 60):
        policy["default"] = small_quantity(rng)
    if chance(rng, 50):
        policy["validValues"] = [small_quantity(rng), *some(rng, ("2", "3", "4", "5"))]
    elif chance(rng, 80):
        bounds: Object = {"min": small_quantity(rng)}
        if chance(rng, 40):
            bounds["max"] = large_quantity(rng)
        if chance(rng, 50):
            bounds["step"] = pick(rng, ("1", "2", "500m", "100m", "1Ki", "1Gi", "1u"))
        policy["validRange"] = bounds
    if mood.odd(rng, 12):
        _roughen(rng, policy)
    made["requestPolicy"] = policy
    return made


def _roughen(rng: random.Random, policy: Object) -> None:
    """Put an edge value somewhere into the policy; a step is never zero or less."""
    bounds = policy.get("validRange")
    place = pick(rng, (policy, policy if bounds is None else bounds))
    for key in place:
        if key in {"default", "min", "max", "step"} and chance(rng, 50):
            text = rough_quantity(rng)
            place[key] = text if key != "step" or not text.startswith("-") else "1u"


def _consumes(rng: random.Random, counter_sets: list[str], mood: Mood) -> list[Object]:
    names = counter_sets if chance(rng, 20) else [pick(rng, counter_sets)]
    if mood.odd(rng, 3):
        names = ["unknown-set"]
    consumed = []
    for name in names:
        counters = some(rng, ("slots", "memory")) or ["slots"]
        if mood.odd(rng, 3):
            counters = ["unknown-counter"]
        entry: Object = {
            "counterSet": name,
            "counters": {counter: {"value": pick(rng, ("1", "2", "3", "500m"))} for counter in counters},
        }
        if mood.odd(rng, 4) or (mood.features["compatibilityGroups"] and chance(rng, 60)):
            entry["compatibilityGroups"] = some(rng, ("red", "green", "blue"))
        consumed.append(entry)
    return consumed


def _taint(rng: random.Random) -> Object:
    taint: Object = {"key": pick(rng, ("heat", "heat", "repair"))}
    if chance(rng, 60):
        taint["value"] = pick(rng, ("high", "low"))
    taint["effect"] = weighted(rng, [(45, "NoSchedule"), (35, "NoExecute"), (15, "None"), (5, "Later")])
    return taint


def toleration(rng: random.Random) -> Object:
    """A toleration that often meets the taints above."""
    made: Object = {}
    if chance(rng, 80):
        made["key"] = pick(rng, ("heat", "heat", "repair"))
    made["operator"] = weighted(rng, [(55, "Exists"), (35, "Equal"), (5, ""), (5, "Like")])
    if made["operator"] != "Exists" and chance(rng, 80):
        made["value"] = pick(rng, ("high", "low"))
    if not made["operator"]:
        del made["operator"]
    if chance(rng, 40):
        made["effect"] = pick(rng, ("NoSchedule", "NoExecute"))
    return made
