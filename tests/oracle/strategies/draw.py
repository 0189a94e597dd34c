"""Small choices that the generators are made of.

Every generator takes a `random.Random`. A mass run gives it a seeded one, which is fast; a hypothesis test
gives it hypothesis's own (`inputs(generator)`), so that hypothesis steers and shrinks the same code.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")


def chance(rng: random.Random, percent: int) -> bool:
    """True in `percent` of a hundred cases; hypothesis shrinks towards False."""
    return rng.randrange(100) >= 100 - percent


def pick(rng: random.Random, choices: Sequence[_T]) -> _T:
    """One of the choices; hypothesis shrinks towards the first."""
    return choices[rng.randrange(len(choices))]


@dataclass(frozen=True, slots=True)
class Mood:
    """What one world is about: its features, whether it is rough, whether it shares capacity, and a theme.

    The theme is "", "match" (constraints that need several devices) or "counters" (partitioned devices).

    Only rough worlds hold the oddities that end in errors; without this limit almost every world would.
    """

    features: dict[str, bool]
    rough: bool
    sharing: bool
    theme: str = ""

    def odd(self, rng: random.Random, percent: int) -> bool:
        """True in `percent` of a hundred cases of a rough world, never in a smooth one."""
        return self.rough and chance(rng, percent)


def some(rng: random.Random, choices: Sequence[_T]) -> list[_T]:
    """Any number of the choices, in their order."""
    return [choice for choice in choices if rng.randrange(2)]


def weighted(rng: random.Random, choices: Sequence[tuple[int, _T]]) -> _T:
    """One of (weight, choice)."""
    at = rng.randrange(sum(weight for weight, _ in choices))
    for weight, choice in choices:
        at -= weight
        if at < 0:
            return choice
    raise AssertionError("the weights add up to more than their sum")


def seeded(seed: int, index: int, subject: str) -> random.Random:
    """The source of input number `index` of a run: the same numbers always make the same input."""
    return random.Random(f"{subject}:{seed}:{index}")


def inputs(generator: Callable[[random.Random], _T]) -> st.SearchStrategy[_T]:
    """The generator as a hypothesis strategy."""
    return st.randoms(use_true_random=False).map(generator)
