"""filter: which of the offered nodes may take the pod, and why not the others.

kube-scheduler has already accepted every node that is offered: a node is refused only by a named veto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np

from extender.inventory.devices import Int32
from extender.model.reason import Kind, Reason
from extender.verbs.desk import Desk, Question


@dataclass(frozen=True, eq=False, slots=True)
class FilterAnswer:
    """Names that pass, refused ones with a text, or an error (then kube-scheduler drops the rest).

    `slots` int32[n] belong to `passed` (-1: a node that the ledger does not know); None in an echo.
    `counts` has refusals by reason, also those that shadow mode or the switch did not enforce.
    """

    passed: Sequence[str]
    slots: Int32 | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    counts: Mapping[Reason, int] = field(default_factory=dict)


def filter_nodes(desk: Desk, question: Question, *, enforce: bool) -> FilterAnswer:
    """Apply every veto; the first that refuses a node gives its reason.

    With `enforce` false (shadow mode, or the switch) all nodes pass and the refusals are only counted.
    """
    refused = np.zeros(len(question.names), np.int16)
    reasons: list[tuple[Reason, str]] = []
    for veto in desk.vetoes:
        refusals = veto.refuse(question)
        if refusals is not None:
            more = (refusals.refused > 0) & (refused == 0)
            refused[more] = refusals.refused[more].astype(np.int16) + len(reasons)
            reasons.extend(refusals.reasons)
    if not reasons or not refused.any():
        return FilterAnswer(question.names, question.slots)
    counts: dict[Reason, int] = {}
    for number, amount in zip(*np.unique(refused[refused > 0], return_counts=True), strict=True):
        reason = reasons[number - 1][0]
        counts[reason] = counts.get(reason, 0) + int(amount)
    if not enforce:
        return FilterAnswer(question.names, question.slots, counts=counts)
    passed = list(compress(question.names, (refused == 0).tolist()))
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    for index in np.nonzero(refused)[0].tolist():
        reason, text = reasons[refused[index] - 1]
        into = unresolvable if reason.kind is Kind.UNRESOLVABLE else failed
        into[question.names[index]] = f"{reason}: {text}"
    error = "" if passed else _error(counts)
    return FilterAnswer(passed, question.slots[refused == 0], failed, unresolvable, error, counts)


def _error(counts: Mapping[Reason, int]) -> str:
    """Nothing is left: a passing reason makes the answer an Error, which is retried without an event."""
    if not any(reason.kind is Kind.PASSING for reason in counts):
        return ""
    said = ", ".join(f"{amount} {reason}" for reason, amount in sorted(counts.items()))
    return f"no node now: {said}"
