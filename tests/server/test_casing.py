"""One key in an odd casing changes nothing, and is seen at little cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.api.extender import ExtenderArgs
from extender.server.casing import Casing
from extender.server.codec import ArgsCodec
from extender.server.tolerant import TolerantDecoder

TRAFFIC = Path(__file__).parent / "data" / "traffic"
Step = str | int


def paths(value: Any, at: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Every key of a document, by the way to it."""
    match value:
        case dict():
            for key, inner in value.items():
                yield (*at, key)
                yield from paths(inner, (*at, key))
        case list():
            for index, inner in enumerate(value):
                yield from paths(inner, (*at, index))


def respelled(value: Any, path: tuple[Step, ...]) -> Any:
    """The document with the last key of the path in capitals."""
    step, *rest = path
    if isinstance(value, list):
        return [
            respelled(inner, tuple(rest)) if index == step else inner for index, inner in enumerate(value)
        ]
    if rest:
        return {k: respelled(inner, tuple(rest)) if k == step else inner for k, inner in value.items()}
    return {key.upper() if key == step else key: inner for key, inner in value.items()}


def in_a_map(path: tuple[Step, ...]) -> bool:
    """Whether the last key is a person's own: there, casing means something."""
    own = {"labels", "annotations", "nodeSelector", "requests", "limits"}
    return len(path) > 1 and path[-2] in own | {"NodeNameToVictims", "NodeNameToMetaVictims"}


@pytest.mark.parametrize(
    "name", ["names-filter-claim", "names-filter-podgroup-member", "nodes-filter-dpfill-0-device-plugin"]
)
def test_no_key_is_lost_for_its_casing(name: str) -> None:
    body = msgspec.json.decode((TRAFFIC / f"{name}.json").read_bytes())["request"]
    codec = ArgsCodec()
    proper, names = codec.args(msgspec.json.encode(body))
    tried = 0
    for path in paths(body):
        if path[:2] == ("Nodes", "items") or in_a_map(path):
            continue
        odd, odd_names = codec.args(msgspec.json.encode(respelled(body, path)))
        assert (odd.pod, odd_names) == (proper.pod, names), path
        tried += 1
    assert tried > 40


@pytest.mark.parametrize("form", ["names", "nodes"])
def test_no_key_of_preempts_arguments_is_lost_for_its_casing(form: str) -> None:
    recorded = (TRAFFIC / f"{form}-preempt-dpurgent-device-plugin.json").read_bytes()
    body = msgspec.json.decode(recorded)["request"]
    codec = ArgsCodec()
    proper = codec.preemption(msgspec.json.encode(body))
    tried = [path for path in paths(body) if not in_a_map(path)]
    assert len(tried) > 40
    for path in tried:
        assert codec.preemption(msgspec.json.encode(respelled(body, path))) == proper, path


def test_a_key_is_odd_by_case_alone() -> None:
    casing = Casing(ExtenderArgs)
    assert casing.odd(b'{"pod" : {}}')
    assert casing.odd(b'{"Pod": {"spec": {"Containers":[]}}}')
    assert not casing.odd(b'{"Pod": {"spec": {"containers": [{"image": "POD"}], "volumes": []}}}')
    assert not casing.odd(b'{"Pod": {"metadata": {"annotations": {"text": "\\"SPEC\\": 1"}}}}')


def test_an_odd_key_is_odd_the_second_time_too() -> None:
    casing = Casing(ExtenderArgs)
    assert [casing.odd(b'{"POD": {}}') for _ in range(2)] == [True, True]


def test_what_is_remembered_has_a_bound() -> None:
    casing = Casing(ExtenderArgs)
    for number in range(12):
        letters = chr(ord("a") + number)
        keys = [
            f'"x{letters}{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}":0'
            for i in range(1000)
        ]
        assert not casing.odd("".join(keys).encode())
    assert len(casing._harmless) <= 11_200
    assert casing.odd(b'"SPEC":')


def test_labels_that_look_like_odd_keys_stay_as_they_are() -> None:
    pod = b'{"metadata": {"labels": {"Name": "q"}, "uid": "u"}, "spec": {"containers": [{}]}}'
    body = b'{"Pod": ' + pod + b', "NodeNames": ["n"]}'
    found, _ = ArgsCodec().args(body)
    assert found == TolerantDecoder(ExtenderArgs).decode(body)
    assert found.pod is not None
    assert found.pod.metadata.labels == {"Name": "q"}
