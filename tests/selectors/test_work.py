"""Small texts that make exponential values, and dear calls, end soon with an error of their own."""

from __future__ import annotations

import time

import pytest

from extender.model.device import DeviceFacts
from extender.selectors import Program, compile  # noqa: A004 - the seam's name
from extender.selectors.values import MapValue, Optional
from extender.selectors.work import tree_size

SECONDS = 20.0
"""Processor time that none of these may use, on a slow machine."""


def doubled(first: str, step: str, use: str, times: int = 40) -> str:
    binds = "".join(f"cel.bind(a{n}, {step.replace('A', f'a{n - 1}')}, " for n in range(1, times))
    return f"cel.bind(a0, {first}, {binds}{use.replace('A', f'a{times - 1}')}" + ")" * times


TOO_LARGE = {
    "a list added to itself": doubled("[1]", "A + A", "A.size() > 0"),
    "nested lists compared": doubled("[1]", "[A, A]", "A == A"),
    "nested dynamic lists compared": doubled("[1]", "[dyn(A), dyn(A)]", "A == A"),
    "nested lists printed": doubled("[1]", "[A, A]", "'%s'.format([A]) == ''"),
    "nested lists flattened": doubled("[1]", "[A, A]", "A.flatten(100).size() == 1"),
    "nested lists searched": doubled("[1]", "[A, A]", "A in [A]"),
    "nested lists made distinct": doubled("[1]", "[A, A]", "A.distinct().size() == 1"),
    "nested lists as sets": doubled("[1]", "[A, A]", "sets.equivalent(A, A)"),
    "nested optionals in lists": doubled("[optional.of(1)]", "[optional.of(A), optional.of(A)]", "A == A"),
    "nested maps compared": doubled("{1: 1}", "{1: dyn(A), 2: dyn(A)}", "A == A"),
    "texts replaced": f"lists.range(5000).all(x, '{'a' * 3000}'.replace('a', '{'b' * 5000}') != '')",
}
TOO_DEAR = {
    "a long list made distinct": "lists.range(100000).distinct().size() > 0",
    "long sets": "sets.equivalent(lists.range(100000), lists.range(100000))",
    "a long list sorted": "lists.range(100000).map(x, -x).sort().size() > 0",
    "loops in loops": "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))",
    "doubled texts": doubled("'aaaaaaaa'", "A + A", "A.size() > 0"),
}


def outcome(text: str) -> str | None:
    program = compile(text)
    assert isinstance(program, Program), program
    began = time.process_time()
    verdict = program.evaluate(DeviceFacts(driver="d"))
    assert time.process_time() - began < SECONDS
    return verdict.error


@pytest.mark.parametrize("text", TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_values_too_large_end_the_evaluation(text: str) -> None:
    assert outcome(text) == "operation cancelled: the values that the expression makes are too large"


@pytest.mark.parametrize("text", TOO_DEAR.values(), ids=TOO_DEAR.keys())
def test_calls_too_dear_are_not_carried_out(text: str) -> None:
    assert outcome(text) == "operation cancelled: actual cost limit exceeded"


def test_nothing_absorbs_the_end() -> None:
    text = f"true || {TOO_LARGE['nested lists compared']}"
    assert outcome(text) is None
    assert outcome(f"{TOO_LARGE['nested lists compared']} || true") is not None


@pytest.mark.parametrize(
    ("value", "size"),
    [(1, 1), ([1, 2, 3], 4), ([[1]], 8 * 4), (Optional([1]), 8 * 4), (MapValue({1: 2}), 16)],
)
def test_work_is_the_number_of_values_nested_ones_weighing_more(value: object, size: int) -> None:
    assert tree_size(value, 1 << 40) == size


def test_measuring_stops_behind_the_limit() -> None:
    value: list[object] = [1, 1]
    for _ in range(60):
        value = [value, value]
    assert 1000 < tree_size(value, 1000) < 1100
