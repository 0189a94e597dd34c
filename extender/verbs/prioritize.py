"""prioritize: the judges' ranks as integers, in request order."""

from __future__ import annotations

from extender.scoring.bench import Ruling
from extender.verbs.desk import Desk, Question, candidates_of


def prioritize(desk: Desk, question: Question) -> Ruling:
    """Ask the bench; `scores` of the ruling are what kube-scheduler gets, 0..10 by candidate."""
    return desk.bench.rule(
        candidates_of(question, desk.policy.thresholds),
        desk.weights(question),
        question.snapshot,
        question.now,
        one_best=question.demand.asks_for_devices and desk.policy.ties == "first",
    )
