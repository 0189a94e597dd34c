"""kube-scheduler's shapes: keys as Go spells them, nothing left out."""

from __future__ import annotations

import msgspec
import pytest

from extender.api.extender import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    HostPriority,
    MetaPod,
    MetaVictims,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            ExtenderFilterResult(),
            '{"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}',
        ),
        ([HostPriority("n1", 7)], '[{"Host":"n1","Score":7}]'),
        (ExtenderBindingResult(), '{"Error":""}'),
        (
            ExtenderPreemptionResult({"n1": MetaVictims([MetaPod("u")], 0)}),
            '{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u"}],"NumPDBViolations":0}}}',
        ),
    ],
)
def test_answers_have_every_key(value: object, text: str) -> None:
    assert msgspec.json.encode(value).decode() == text


def test_a_binding_is_read_as_it_is_sent() -> None:
    sent = b'{"PodName":"q","PodNamespace":"ns","PodUID":"u","Node":"n1"}'
    assert msgspec.json.decode(sent, type=ExtenderBindingArgs) == ExtenderBindingArgs("q", "ns", "u", "n1")


def test_unknown_fields_are_ignored_and_nodes_stay_as_they_came() -> None:
    sent = b'{"Pod":{"spec":{"new":1},"kind":"Pod"},"Nodes":{"metadata":{},"items":[{"a":1.50}]},"New":1}'
    read = msgspec.json.decode(sent, type=ExtenderArgs)
    assert read.nodes is not None
    assert [bytes(item) for item in read.nodes.items or ()] == [b'{"a":1.50}']
