"""Feeds the same inputs to our engine and to upstream's, and sorts what comes out.

Owns the loop, the sorting of differences and the shrinking. It never knows what is compared.
"""

from __future__ import annotations

import collections
import json
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tests.oracle.shrink import shrunk
from tests.oracle.strategies.draw import seeded
from tests.oracle.subjects.subject import Difference, Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.oracle.client import Oracle

Input = TypeVar("Input")
Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")

_BATCH = 200
_SHRINK_S = 20.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference, with the input made small."""

    subject: str
    index: int
    difference: Difference
    case: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.subject} input {self.index}: {self.difference}\n  {json.dumps(self.case)}"


@dataclass(slots=True)
class Tally:
    """What a campaign saw."""

    ran: int = 0
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    known: collections.Counter[str] = field(default_factory=collections.Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    varying: int = 0
    undecided: int = 0
    soft: collections.Counter[str] = field(default_factory=collections.Counter)
    soft_examples: dict[str, Finding] = field(default_factory=dict)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds_ours: float = 0.0
    seconds_theirs: float = 0.0

    @property
    def failed(self) -> int:
        """How many inputs had a hard difference."""
        return sum(self.kinds.values())


@dataclass(frozen=True, slots=True)
class Crash:
    """Our engine raised."""

    text: str


class Campaign(Generic[Input, Ours, Theirs]):
    """One subject against one oracle."""

    def __init__(self, subject: Subject[Input, Ours, Theirs], oracle: Oracle, *, keep: int = 10) -> None:
        self._subject = subject
        self._oracle = oracle
        self._keep = keep
        self.tally = Tally()

    def run(self, count: int, seed: int, *, first: int = 0) -> Tally:
        """Run `count` inputs of a seed, starting with number `first`."""
        for start in range(first, first + count, _BATCH):
            numbers = range(start, min(start + _BATCH, first + count))
            self.judge(
                [self._subject.generate(seeded(seed, number, self._subject.name)) for number in numbers],
                start,
            )
        return self.tally

    def judge(self, inputs: Sequence[Input], start: int = 0) -> None:
        """Ask both sides about the inputs and sort the answers."""
        began = time.perf_counter()
        answers = self._subject.theirs(self._oracle, inputs)
        self.tally.seconds_theirs += time.perf_counter() - began
        for offset, (made, theirs) in enumerate(zip(inputs, answers, strict=True)):
            self._sort(start + offset, made, theirs)

    def _sort(self, index: int, made: Input, theirs: Theirs) -> None:
        tally = self.tally
        tally.ran += 1
        tally.outcomes[self._subject.outcome(theirs)] += 1
        known = self._subject.known(made, theirs)
        if known is not None:
            tally.known[known.name] += 1
            tally.reasons[known.name] = known.reason
            return
        ours = self._ours(made)
        if not isinstance(ours, Crash) and self._undecided(ours):
            tally.undecided += 1
            return
        difference = self._difference(ours, theirs)
        if difference is None:
            return
        if self._varies(made, ours, difference):
            tally.varying += 1
            return
        if difference.soft:
            tally.soft[difference.kind] += 1
            tally.soft_examples.setdefault(
                difference.kind,
                Finding(self._subject.name, index, difference, self._subject.as_case(made)),
            )
            return
        tally.kinds[difference.kind] += 1
        if len(tally.findings) < self._keep:
            tally.findings.append(self._finding(index, made, difference))

    def _undecided(self, ours: Ours) -> bool:
        undecided = getattr(self._subject, "undecided", None)
        return bool(undecided is not None and undecided(ours))

    def _ours(self, made: Input) -> Ours | Crash:
        began = time.perf_counter()
        try:
            return self._subject.ours(made)
        except Exception:  # noqa: BLE001 - whatever our engine raises is what is looked for
            return Crash(traceback.format_exc(limit=-3).strip())
        finally:
            self.tally.seconds_ours += time.perf_counter() - began

    def _difference(self, ours: Ours | Crash, theirs: Theirs) -> Difference | None:
        if isinstance(ours, Crash):
            return Difference("crash", ours.text, self._subject.outcome(theirs))
        return self._subject.compare(ours, theirs)

    def _varies(self, made: Input, ours: Ours | Crash, difference: Difference) -> bool:
        """Whether upstream answers the same input differently, with our answer or a spread around it."""
        answers = self._subject.repeated(self._oracle, made)
        if len(answers) < 2 or isinstance(ours, Crash):
            return False
        found = [self._subject.compare(ours, answer) for answer in answers]
        return any(one is None or one.soft for one in found) or (
            difference.kind in {"cost", "error text"}
            and all(one.kind == difference.kind for one in found if one)
        )

    def _finding(self, index: int, made: Input, difference: Difference) -> Finding:
        def fails(candidate: Input) -> bool:
            found = self.difference_of(candidate)
            return found is not None and found.alike(difference)

        small = shrunk(made, self._subject.smaller, fails, _SHRINK_S)
        found = self.difference_of(small) or difference
        return Finding(self._subject.name, index, found, self._subject.as_case(small))

    def difference_of(self, made: Input) -> Difference | None:
        """The hard difference of one input, if it has one that does not vary."""
        [theirs] = self._subject.theirs(self._oracle, [made])
        if self._subject.known(made, theirs) is not None:
            return None
        ours = self._ours(made)
        if not isinstance(ours, Crash) and self._undecided(ours):
            return None
        difference = self._difference(ours, theirs)
        if difference is None or difference.soft or self._varies(made, ours, difference):
            return None
        return difference
