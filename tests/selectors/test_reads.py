"""What a verdict can depend on is found, never too little."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api.resource import DeviceAttribute, DeviceCapacity
from extender.model.device import DeviceFacts
from extender.selectors import Program, Reads, compile  # noqa: A004 - the seam's name


def reads(text: str) -> Reads:
    compiled = compile(text)
    assert isinstance(compiled, Program), compiled
    return compiled.reads


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("true", ()),
        ("device.driver == 'a'", ("driver",)),
        ("device.allowMultipleAllocations", ("allowMultipleAllocations",)),
        ("device.attributes['d'].x == 1", ("attributes/d/x",)),
        ("device.attributes['d']['x'] == 1", ("attributes/d/x",)),
        ("device.attributes['d'].?x.orValue(1) == 1", ("attributes/d/x",)),
        ("has(device.attributes['d'].x)", ("attributes/d/x",)),
        ("'x' in device.attributes['d']", ("attributes/d/x",)),
        ("'d' in device.attributes", ("attributeDomains",)),
        ("device.attributes['d'].size() == 1", ("attributeIds/d",)),
        ("device.attributes['d'].exists(k, k == 'x')", ("attributeIds/d",)),
        ("device.attributes['d'].exists(k, v, v == 1)", ("attributeValues/d",)),
        (
            "device.attributes['d'].exists(k, device.attributes['d'][k] == 1)",
            ("attributeIds/d", "attributeValues/d"),
        ),
        ("device.attributes.size() == 1", ("attributeDomains",)),
        ("device.capacity['d'].m.isLessThan(quantity('1'))", ("capacity/d/m",)),
        ("device.capacity['d'].all(k, k == 'm')", ("capacityIds/d",)),
        ("cel.bind(g, device.attributes['d'], g.x == 1)", ("attributes/d/x",)),
        ("device.attributes['d'][device.driver] == 1", ("driver", "attributeValues/d")),
        ("device.attributes[device.driver].x == 1", ("everything",)),
        ("device == device", ("everything",)),
        ("[1].map(device, device) == [1]", ()),
    ],
)
def test_the_columns_say_what_is_read(text: str, columns: tuple[str, ...]) -> None:
    assert reads(text).columns == ("faults", *columns)


TEXTS = [
    "device.attributes['d'].x == 1 || device.attributes['d'].?y.orValue(2) == 2",
    "cel.bind(g, device.attributes['d'], has(g.x) && g.x == 2)",
    "'x' in device.attributes['d'] && device.capacity['d'].m.isGreaterThan(quantity('1'))",
    "device.driver == 'd' ? device.attributes['d'].x == 1 : device.attributes['e'].x == 1",
]
NAMES = ["x", "y", "e/x", "z", "d/x"]


@settings(max_examples=200)
@given(
    st.sampled_from(TEXTS),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)),
    st.sampled_from(["d", "e"]),
    st.integers(0, 3),
)
def test_what_is_not_read_does_not_change_the_verdict(
    text: str, attributes: dict[str, int], driver: str, extra: int
) -> None:
    compiled = compile(text)
    assert isinstance(compiled, Program)
    facts = DeviceFacts(
        driver=driver,
        attributes={name: DeviceAttribute(int=value) for name, value in attributes.items()},
        capacity={"m": DeviceCapacity(value="2")},
    )
    more = {**facts.attributes, "unread.example.com/z": DeviceAttribute(int=extra)}
    changed = dataclasses.replace(facts, attributes=more)
    assert not compiled.reads.everything
    assert compiled.evaluate(facts) == compiled.evaluate(changed)
