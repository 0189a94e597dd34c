"""What the fuzzer needs to know of one thing that is compared with upstream.

Owns the protocol of a subject and the shape of a difference. It never runs anything by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from tests.oracle.client import Oracle

Input = TypeVar("Input")
Theirs = TypeVar("Theirs", contravariant=False)
Ours = TypeVar("Ours")


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two answers part: the kind, and what each side said.

    `soft` marks a text that may differ: it is counted and printed, and fails nothing.
    """

    kind: str
    ours: str
    theirs: str
    soft: bool = False

    def alike(self, other: Difference) -> bool:
        """Whether both are of one kind between the same two words, whatever the rest of the texts."""
        return (self.kind, self.ours.split(" ", 1)[0], self.theirs.split(" ", 1)[0]) == (
            other.kind,
            other.ours.split(" ", 1)[0],
            other.theirs.split(" ", 1)[0],
        )

    def __str__(self) -> str:
        return f"{self.kind}: ours {self.ours}, upstream {self.theirs}"


@dataclass(frozen=True, slots=True)
class KnownBug:
    """An upstream fault that the comparison recognises by name, counts apart and prints."""

    name: str
    reason: str


class Subject(Protocol[Input, Ours, Theirs]):
    """One engine beside upstream's: how to make inputs, ask both sides and compare."""

    name: str

    def generate(self, rng: random.Random) -> Input:
        """Make one input."""

    def theirs(self, oracle: Oracle, inputs: Sequence[Input]) -> list[Theirs]:
        """Ask upstream, in one go."""

    def ours(self, made: Input) -> Ours:
        """Ask our engine."""

    def compare(self, ours: Ours, theirs: Theirs) -> Difference | None:
        """Tell where the answers part, the most telling place first; None when they agree."""

    def repeated(self, oracle: Oracle, made: Input) -> list[Theirs]:
        """Every distinct answer that upstream gives to the same input: some depend on Go's map order."""

    def known(self, made: Input, theirs: Theirs) -> KnownBug | None:
        """Recognise an answer of upstream that is a known fault of it."""

    def outcome(self, theirs: Theirs) -> str:
        """A word for upstream's answer, for the count of the mix."""

    def smaller(self, made: Input) -> Iterator[Input]:
        """Inputs that are this one made smaller, the biggest steps first."""

    def as_case(self, made: Input) -> dict[str, Any]:
        """The input as JSON, in the field names of the conformance cases."""
