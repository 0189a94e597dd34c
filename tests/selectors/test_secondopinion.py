"""cel-python as a second opinion: every difference is known and has its reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from extender.model.device import DeviceFacts
from extender.selectors import CompileError, compile, prepare  # noqa: A004 - the seam's name
from extender.selectors.conformance import _facts
from extender.selectors.secondopinion import SecondOpinion

DATA = Path(__file__).parent / "data"


def test_every_difference_to_the_second_opinion_is_listed_with_its_reason() -> None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    cases = yaml.load((DATA / "selectors.yaml").read_text(), Loader=loader)["cases"]
    known = yaml.load((DATA / "second_opinion.yaml").read_text(), Loader=loader)
    opinion = SecondOpinion()
    differences: dict[str, str] = {}
    for case in cases:
        if case.get("env") or (case.get("cost") or 0) > 1000:
            continue
        device = prepare(_facts(case["id"], case["device"]))
        program = compile(case["expression"])
        ours = None if isinstance(program, CompileError) else program.evaluate(device).value
        theirs = opinion.verdict(case["expression"], device).value
        if ours is not theirs:
            differences[case["id"]] = "error" if theirs is None else str(theirs).lower()
    assert differences == {name: entry["answer"] for name, entry in known.items()}
    assert all(entry["reason"] for entry in known.values())


@pytest.mark.parametrize("text", ["(" * 5000, "\ud800", "1 +", "device.nope", "1", "x" * 20_000])
def test_whatever_the_text_there_is_an_answer(text: str) -> None:
    answer = SecondOpinion().verdict(text, prepare(DeviceFacts(driver="d")))
    assert answer.value is None
    assert answer.error


def test_asking_leaves_the_recursion_limit_as_it_was() -> None:
    before = sys.getrecursionlimit()
    SecondOpinion().verdict("true", prepare(DeviceFacts(driver="d")))
    assert sys.getrecursionlimit() == before
