"""Bytes to questions and answers to bytes, exactly as kube-scheduler writes and reads them.

The strict decoder does the work; what it refuses goes once through a tolerant one (Go's decoder takes any key
casing and nulls anywhere), whose faults name the field. Never: a decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from extender.api.extender import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
    MetaVictims,
    NamedNode,
    NodeList,
    Victims,
)
from extender.inventory.devices import Int32
from extender.inventory.topology import Topology
from extender.model.errors import WireError
from extender.scoring.quantise import Int8
from extender.server.casing import Casing
from extender.server.tolerant import TolerantDecoder
from extender.verbs.filter import FilterAnswer

T = TypeVar("T")

NO_PRIORITIES = b"[]"
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


_HEAD = b'{"Score":'
_SCORE_AT = len(_HEAD)
_SPACE = ord(" ")
_TENS = np.array([ord(" ")] * 10 + [ord("1")], np.uint8)
_UNITS = np.array([ord("0") + score % 10 for score in range(11)], np.uint8)


@dataclass(frozen=True, eq=False, slots=True)
class _Entries:
    """HostPriority texts of all nodes as rows of one width, room left for the score, blanks behind.

    JSON takes blanks anywhere between tokens, so an answer is a gather of rows: 5,000 small objects, and the
    cache misses of touching them in a random order, are what an answer would cost otherwise.
    The score comes first, so that it stands at the same two places in every row.
    `text` uint8[slots, width]; `commas` by slot: where the comma behind the entry stands.
    """

    names: Sequence[str]
    text: npt.NDArray[np.uint8]
    commas: Sequence[int]


def _entries(names: Sequence[str], encoder: msgspec.json.Encoder) -> _Entries:
    entries = [_HEAD + b"  " + b',"Host":' + encoder.encode(name) + b"}," for name in names]
    width = max(map(len, entries), default=0)
    text = b"".join(entry.ljust(width) for entry in entries)
    rows = np.frombuffer(text, np.uint8).reshape(len(names), width)
    return _Entries(names, rows, [len(entry) - 1 for entry in entries])


class ArgsCodec:
    """Decoders and encoders of the verbs, made once."""

    def __init__(self) -> None:
        self._args = msgspec.json.Decoder(ExtenderArgs)
        self._any_args = TolerantDecoder(ExtenderArgs)
        self._binding = msgspec.json.Decoder(ExtenderBindingArgs)
        self._any_binding = TolerantDecoder(ExtenderBindingArgs)
        self._preemption = msgspec.json.Decoder(ExtenderPreemptionArgs)
        self._any_preemption = TolerantDecoder(ExtenderPreemptionArgs)
        self._name = msgspec.json.Decoder(NamedNode)
        self._any_name = TolerantDecoder(NamedNode)
        self._encoder = msgspec.json.Encoder()
        self._entries: _Entries | None = None
        self._casing = Casing(ExtenderArgs)
        self._casing_of_victims = Casing(Victims)
        self._casing_of_meta_victims = Casing(MetaVictims)  # its UID would be odd in a pod

    def args(self, body: bytes) -> tuple[ExtenderArgs, list[str]]:
        """Arguments of filter or prioritize, and the candidates' names in request order.

        Raises WireError that names the field.
        """
        found = _decode(self._args, self._any_args, body)
        if (
            found.pod is None
            or not (found.pod.metadata.uid and found.pod.spec.containers)
            or (found.node_names is None and (found.nodes is None or found.nodes.items is None))
            or self._casing.odd(_before(body, b'"Nodes":', b'"NodeNames":'))
        ):
            found = self._any_args.decode(body)
        if found.pod is None:
            raise WireError("Pod is missing")
        if found.node_names is not None:
            return found, found.node_names
        if found.nodes is None:
            raise WireError("NodeNames and Nodes are both missing")
        return found, self._names_of(found.nodes.items or ())

    def binding(self, body: bytes) -> ExtenderBindingArgs:
        """Arguments of bind. Raises WireError that names the field."""
        found = _decode(self._binding, self._any_binding, body)
        if not (found.pod_name and found.pod_namespace and found.pod_uid and found.node):
            found = self._any_binding.decode(body)
        return found

    def preemption(self, body: bytes) -> ExtenderPreemptionArgs:
        """Arguments of preempt. Raises WireError that names the field."""
        found = _decode(self._preemption, self._any_preemption, body)
        victims = found.node_name_to_meta_victims or found.node_name_to_victims
        if (
            found.pod is None
            or not victims
            or any(each.pods is None for each in victims.values())
            or self._odd_preemption(body, meta=found.node_name_to_meta_victims is not None)
        ):
            found = self._any_preemption.decode(body)
        if found.pod is None:
            raise WireError("Pod is missing")
        return found

    def _odd_preemption(self, body: bytes, *, meta: bool) -> bool:
        head = _before(body, b'"NodeNameToVictims":', b'"NodeNameToMetaVictims":')
        of_victims = self._casing_of_meta_victims if meta else self._casing_of_victims
        return self._casing.odd(head) or of_victims.odd(body[len(head) :])

    def filter_result(self, args: ExtenderArgs, names: Sequence[str], answer: FilterAnswer) -> bytes:
        """The answer in the form (or both) that was asked for: names, or whole nodes as they came."""
        nodes: NodeList | None = None
        node_names: list[str] | None = None
        if args.node_names is not None:
            node_names = list(answer.passed) if answer.passed is not names else args.node_names
        if args.nodes is not None:
            kept = set(answer.passed)
            items = args.nodes.items or ()
            of_items = names if node_names is None else self._names_of(items)
            nodes = NodeList([raw for raw, name in zip(items, of_items, strict=True) if name in kept])
        return self._encoder.encode(
            ExtenderFilterResult(
                nodes, node_names, dict(answer.failed), dict(answer.unresolvable), answer.error
            )
        )

    def filter_error(self, text: str) -> bytes:
        """An answer that makes the attempt fail with a text, to be retried."""
        return self._encoder.encode(ExtenderFilterResult(error=text))

    def priorities(self, names: Sequence[str], slots: Int32, topology: Topology, scores: Int8) -> bytes:
        """HostPriorityList; integers only, since Go drops a list with a 7.0 in it.

        `slots` int32[n] belong to `names`: known nodes have their part of the text ready.
        """
        if not names:
            return NO_PRIORITIES
        if slots.min() < 0:
            return self._encoder.encode(
                [HostPriority(name, score) for name, score in zip(names, scores.tolist(), strict=True)]
            )
        entries = self._entries_of(topology)
        text = entries.text.take(slots, axis=0)  # a third of the time of text[slots]
        text[:, _SCORE_AT] = _TENS[scores]
        text[:, _SCORE_AT + 1] = _UNITS[scores]
        text[-1, entries.commas[slots[-1]]] = _SPACE  # no comma behind the last one
        return b"".join((b"[", text.data, b"]"))  # one copy, where tobytes and + make three

    def _entries_of(self, topology: Topology) -> _Entries:
        if self._entries is None or self._entries.names is not topology.names:
            self._entries = _entries(topology.names, self._encoder)
        return self._entries

    def zeros(self, names: Sequence[str]) -> bytes:
        """Indifference: every candidate scores 0."""
        return self._encoder.encode([HostPriority(name, 0) for name in names])

    def preemption_result(self, result: ExtenderPreemptionResult) -> bytes:
        """The answer of preempt."""
        return self._encoder.encode(result)

    def binding_result(self, text: str) -> bytes:
        """The answer of bind: "" when the pod is on its node, else what is wrong."""
        return self._encoder.encode(ExtenderBindingResult(text))

    def _names_of(self, items: Sequence[msgspec.Raw]) -> list[str]:
        return [self._node_name(raw, at) for at, raw in enumerate(items)]

    def _node_name(self, raw: msgspec.Raw, at: int) -> str:
        try:
            return self._name.decode(raw).metadata.name
        except _UNREADABLE:
            try:
                return self._any_name.decode(bytes(raw)).metadata.name
            except WireError as error:
                raise WireError(f"Nodes.items[{at}]: {error}") from error


def _before(body: bytes, *keys: bytes) -> bytes:
    """The part of a body with the pod: what stands before `keys`, the nodes, which are most of it.

    All of it where they stand first.
    """
    ends = [at for at in map(body.find, keys) if at >= 0]
    end = min(ends, default=len(body))
    return body[:end] if body.find(b'"Pod"', 0, end) >= 0 else body


def _decode(strict: msgspec.json.Decoder[T], tolerant: TolerantDecoder[T], body: bytes) -> T:
    try:
        return strict.decode(body)
    except _UNREADABLE:
        return tolerant.decode(body)
