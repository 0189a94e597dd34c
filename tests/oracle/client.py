"""Talks to the oracle: one process for many questions, asked in one go and answered in order.

Owns the process and the shapes of its answers. It never judges an answer and never builds the oracle.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Any, Literal, Self, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_T = TypeVar("_T")

Case = dict[str, Any]
"""One allocation in the field names of the conformance cases."""


class OracleError(Exception):
    """The oracle could not handle a question, or died, or took too long. Never a verdict."""


class SelectorVerdict(msgspec.Struct, frozen=True):
    """What the scheduler's CEL evaluator says of one expression on one device."""

    verdict: Literal["true", "false", "compile error", "runtime error", "panic"]
    error: str = ""
    cost: int | None = None
    max_cost: int | None = msgspec.field(default=None, name="maxCost")


class AllocateAnswer(msgspec.Struct, frozen=True):
    """What the scheduler's allocator says of one node; share IDs are replaced by one fixed value."""

    outcome: Literal["allocated", "no-fit", "error", "panic"]
    results: list[dict[str, Any]]
    error: str | None = None
    error_scope: Literal["", "fatal", "node", "interrupted"] = msgspec.field(default="", name="errorScope")
    allocate_one: int = msgspec.field(default=0, name="allocateOne")


class DerivedAnswer(msgspec.Struct, frozen=True):
    """A derived attribute in wire shape, or why there is none."""

    attribute: dict[str, Any] | None = None
    fault: Literal["", "compile", "runtime"] = msgspec.field(default="", name="faultKind")
    error: str = ""


class QuantityFacts(msgspec.Struct, frozen=True, rename="camel"):
    """What apimachinery makes of one text; the values are None where it does not parse."""

    ok: bool
    error: str = ""
    canonical: str = ""
    decimal: str = ""
    format: str = ""
    value: int | None = None
    milli: int | None = None
    as_int64: int | None = msgspec.field(default=None, name="asInt64")
    sign: int | None = None


class QuantityAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Facts of two texts and, where both parse, of their comparison, sum and difference."""

    a: QuantityFacts
    b: QuantityFacts
    compare: int | None = None
    add: str = ""
    add_decimal: str = ""
    sub: str = ""
    sub_decimal: str = ""
    neg: str = ""


class BenchRound(msgspec.Struct, frozen=True, rename="camel"):
    """Nanoseconds of one round: building the allocator, and all nodes one after the other."""

    new_allocator_ns: int
    allocate_ns: int
    allocate_one: int


class BenchAnswer(msgspec.Struct, frozen=True):
    """All rounds of one allocation bench; round 0 also compiles the selectors."""

    rounds: list[BenchRound]
    nodes: int
    outcomes: dict[str, int]


class SelectorBench(msgspec.Struct, frozen=True, rename="camel"):
    """Nanoseconds of one compilation, and of `repeat` evaluations together."""

    compile_ns: int
    evaluate_ns: int
    repeat: int


class NodeSelectorAnswer(msgspec.Struct, frozen=True):
    """Whether a node selector selects a node; `error` when it can't be parsed."""

    match: bool
    error: str = ""


class Oracle:
    """A running oracle. Use it as a context manager; questions come from one thread at a time."""

    def __init__(self, binary: Path, *, timeout: float = 120.0) -> None:
        self._binary = binary
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen([self._binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # the oracle may have ended before
                process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def ask(self, questions: Sequence[Mapping[str, Any]]) -> list[bytes]:
        """Answer every question in order, as the JSON lines that the oracle wrote.

        A thread writes while this one reads, so neither side can fill a pipe and wait for the other.

        Raises:
            OracleError: the oracle ended, or the whole batch took longer than the timeout.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise OracleError("the oracle is not running")
        writer = threading.Thread(target=_write, args=(process.stdin, questions), daemon=True)
        watchdog = threading.Timer(self._timeout, process.kill)
        watchdog.daemon = True
        writer.start()
        watchdog.start()
        try:
            answers = []
            for number in range(len(questions)):
                line = process.stdout.readline()
                if not line.endswith(b"\n"):
                    raise OracleError(f"the oracle ended at question {number}: {_shown(questions[number])}")
                answers.append(line)
        finally:
            watchdog.cancel()
            writer.join(timeout=10)
        return answers

    def selectors(self, questions: Iterable[Mapping[str, Any]]) -> list[SelectorVerdict]:
        """Evaluate {expression, device, environment} each."""
        asked = [{"op": "selector", **question} for question in questions]
        return [_decoded(line, SelectorVerdict, asked[i]) for i, line in enumerate(self.ask(asked))]

    def allocations(self, cases: Iterable[Case], *, timeout_ms: int = 5_000) -> list[AllocateAnswer]:
        """Allocate each case; one that takes longer than `timeout_ms` answers with scope interrupted."""
        asked = [{**case, "op": "allocate", "timeoutMs": timeout_ms} for case in cases]
        return [_decoded(line, AllocateAnswer, asked[i]) for i, line in enumerate(self.ask(asked))]

    def distinct_selectors(self, question: Mapping[str, Any], repeat: int) -> list[SelectorVerdict]:
        """Every distinct verdict of `repeat` evaluations: Go iterates maps in random order."""
        asked = {"op": "selector", **question, "repeat": repeat}
        line = self.ask([asked])[0]
        body = msgspec.json.decode(line)
        if "distinct" not in body:
            return [_decoded(line, SelectorVerdict, asked)]
        return msgspec.convert(body["distinct"], list[SelectorVerdict])

    def distinct_allocations(self, case: Case, repeat: int) -> list[AllocateAnswer]:
        """Every distinct answer of `repeat` allocations of one case."""
        asked = {**case, "op": "allocate", "timeoutMs": 5_000, "repeat": repeat}
        line = self.ask([asked])[0]
        body = msgspec.json.decode(line)
        if "distinct" not in body:
            return [_decoded(line, AllocateAnswer, asked)]
        return msgspec.convert(body["distinct"], list[AllocateAnswer])

    def derive(self, question: Mapping[str, Any]) -> DerivedAnswer:
        """Compute the derived attribute {expression, device}."""
        asked = {"op": "derive", **question}
        return _decoded(self.ask([asked])[0], DerivedAnswer, asked)

    def quantities(self, pairs: Iterable[tuple[str, str]]) -> list[QuantityAnswer]:
        """Parse, compare, add and subtract each pair of texts."""
        asked = [{"op": "quantity", "a": a, "b": b} for a, b in pairs]
        return [_decoded(line, QuantityAnswer, asked[i]) for i, line in enumerate(self.ask(asked))]

    def node_selector(self, selector: Mapping[str, Any], node: Mapping[str, Any]) -> NodeSelectorAnswer:
        """Tell whether the node selector selects the node {name, labels}."""
        asked = {"op": "node-selector", "selector": selector, "node": node}
        return _decoded(self.ask([asked])[0], NodeSelectorAnswer, asked)

    def tolerates(self, toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
        """Tell whether the toleration tolerates the device taint."""
        asked = {"op": "tolerates", "toleration": toleration, "taint": taint}
        return bool(_decoded(self.ask([asked])[0], dict[str, bool], asked)["tolerates"])

    def bench_allocate(self, case: Case, nodes: Sequence[Mapping[str, Any]], repeat: int) -> BenchAnswer:
        """Time one allocator over all nodes {name, labels}, `repeat` rounds, on one core."""
        asked = {**case, "op": "bench-allocate", "nodes": list(nodes), "repeat": repeat}
        return _decoded(self.ask([asked])[0], BenchAnswer, asked)

    def bench_selector(self, question: Mapping[str, Any], repeat: int) -> SelectorBench:
        """Time `repeat` evaluations of {expression, device, environment}."""
        asked = {"op": "bench-selector", **question, "repeat": repeat}
        return _decoded(self.ask([asked])[0], SelectorBench, asked)

    def modules(self) -> dict[str, str]:
        """The versions of the Go modules whose behaviour is reported."""
        asked = {"op": "version"}
        return _decoded(self.ask([asked])[0], dict[str, dict[str, str]], asked)["modules"]


def _write(pipe: IO[bytes], questions: Sequence[Mapping[str, Any]]) -> None:
    try:
        for question in questions:
            pipe.write(json.dumps(question, separators=(",", ":")).encode() + b"\n")
        pipe.flush()
    except (BrokenPipeError, ValueError):
        return  # the reading side reports that the oracle has ended


def _decoded(line: bytes, kind: type[_T], question: Mapping[str, Any]) -> _T:
    body = msgspec.json.decode(line)
    if "fault" in body:
        raise OracleError(f"{body['fault']} (asked: {_shown(question)})")
    return msgspec.convert(body, kind)


def _shown(question: Mapping[str, Any]) -> str:
    return json.dumps(question)[:2_000]
