"""The bench of judges: weighs what each one says of the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.inventory.snapshot import Snapshot
from extender.scoring.candidates import Candidates, Evidence, Float64, Judge
from extender.scoring.quantise import Int8, first_of_best, quantise


@dataclass(frozen=True, eq=False, slots=True)
class Opinion:
    """One judge's scores float64[n] and evidence, with the weight that it counts with: 0 if it abstained."""

    judge: str
    weight: float
    scores: Float64
    evidence: Evidence


@dataclass(frozen=True, eq=False, slots=True)
class Ruling:
    """`total` float64[n] in 0..1: the weighted mean; `scores` int8[n] 0..10: what kube-scheduler gets."""

    opinions: Sequence[Opinion]
    total: Float64
    scores: Int8


class Bench:
    """All judges by name."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self._judges = {judge.name: judge for judge in judges}

    @property
    def names(self) -> tuple[str, ...]:
        """Names that a policy may use."""
        return tuple(self._judges)

    def rule(
        self,
        candidates: Candidates,
        weights: Mapping[str, float],
        snapshot: Snapshot,
        now: float,
        *,
        one_best: bool = False,
    ) -> Ruling:
        """Ask every judge that has a weight; no judge at all is indifference (all 0.5).

        With `one_best` a tie of the best goes to the first of them.
        """
        opinions = [
            _opinion(name, weight, *self._judges[name].judge(candidates, snapshot, now))
            for name, weight in weights.items()
        ]
        whole = sum(opinion.weight for opinion in opinions)
        total = np.full(len(candidates.slots), 0.5)
        if whole > 0:
            total = np.zeros(len(candidates.slots))
            for opinion in opinions:
                total += opinion.scores * (opinion.weight / whole)
        scores = quantise(total)
        return Ruling(opinions, total, first_of_best(scores) if one_best else scores)


def _opinion(name: str, weight: float, scores: Float64, evidence: Evidence) -> Opinion:
    if len(scores) and np.isnan(scores[0]):
        return Opinion(name, 0.0, np.full(len(scores), 0.5), evidence)
    return Opinion(name, weight, scores, evidence)
