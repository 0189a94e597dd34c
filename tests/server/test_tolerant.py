"""Any casing and nulls anywhere, as Go reads them; faults name the field."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api.extender import ExtenderArgs, ExtenderBindingArgs, MetaPod, MetaVictims
from extender.model.errors import WireError
from extender.server.codec import ArgsCodec
from extender.server.tolerant import TolerantDecoder


def test_an_exact_key_wins_its_own_field() -> None:
    found = TolerantDecoder(ExtenderArgs).decode(
        b'{"POD": {"METADATA": {"Name": "q", "labels": {"KeptAsIs": "v"}}}}'
    )
    assert found.pod is not None
    assert (found.pod.metadata.name, found.pod.metadata.labels) == ("q", {"KeptAsIs": "v"})


def test_nulls_are_left_out_of_structs_and_maps() -> None:
    found = TolerantDecoder(ExtenderArgs).decode(
        b'{"Pod": {"metadata": {"labels": {"a": null, "b": "c"}, "uid": null}}}'
    )
    assert found.pod is not None
    assert (found.pod.metadata.labels, found.pod.metadata.uid) == ({"b": "c"}, "")


def every_reader_reads_or_refuses(body: bytes) -> None:
    codec = ArgsCodec()
    for read in (codec.args, codec.binding, codec.preemption):
        with contextlib.suppress(WireError):
            read(body)


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_read_or_refused(body: bytes) -> None:
    every_reader_reads_or_refuses(body)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Pod", "pod", "NodeNames", "Nodes", "items", "metadata", "name"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json)
def test_documents_of_any_shape_are_read_or_refused(document: object) -> None:
    every_reader_reads_or_refuses(msgspec.json.encode(document))


@pytest.mark.parametrize("key", ["PodUID", "poduid", "PODUID", "podUid"])
def test_the_uid_of_a_binding_in_any_casing(key: str) -> None:
    body = f'{{"PodName": "q", "PodNamespace": "ns", "{key}": "u", "Node": "n"}}'.encode()
    assert ArgsCodec().binding(body) == ExtenderBindingArgs("q", "ns", "u", "n")


def test_keys_in_another_casing_are_found_though_the_keys_around_them_are_exact() -> None:
    body = b'{"Pod": {"metadata": {"uid": "u"}, "SPEC": {"containers": [{"name": "c"}]}}, "NodeNames": ["n"]}'
    found, _ = ArgsCodec().args(body)
    assert found.pod is not None
    assert [container.name for container in found.pod.spec.containers or ()] == ["c"]
    preempt = b'{"Pod": {}, "NodeNameToMetaVictims": {"n": {"pods": [{"uid": "u"}]}}}'
    assert ArgsCodec().preemption(preempt).node_name_to_meta_victims == {"n": MetaVictims([MetaPod("u")])}
