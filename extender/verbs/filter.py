"""filter: which of the offered nodes may take the pod, and why not the others.

kube-scheduler has already accepted every node that is offered: a node is refused only by a named veto.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.inventory.devices import Int32
from extender.model.reason import Kind, Reason
from extender.verbs.desk import Desk, Question, Refusals, no_detail


@dataclass(frozen=True, eq=False, slots=True)
class FilterAnswer:
    """Names that pass, refused ones with a text, or an error (then kube-scheduler drops the rest).

    `slots` int32[n] belong to `passed` (-1: a node that the ledger does not know); None in an echo.
    `counts` has refusals by reason, also those that shadow mode or the switch did not enforce. `notes` says
    what could not be used of the pod. `detail(i)` has numbers and names about candidate i, if refused.
    """

    passed: Sequence[str]
    slots: Int32 | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    counts: Mapping[Reason, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    detail: Callable[[int], str] = no_detail


def filter_nodes(desk: Desk, question: Question, *, enforce: bool) -> FilterAnswer:
    """Apply every veto; the first that refuses a node gives its reason.

    With `enforce` false (shadow mode, or the switch) all nodes pass and the refusals are only counted.
    """
    refused = np.zeros(len(question.names), np.int16)
    reasons: list[tuple[Reason, str]] = []
    heard: list[tuple[int, Refusals]] = []
    for veto in desk.vetoes:
        refusals = veto.refuse(question)
        if refusals is not None:
            at = np.flatnonzero(refusals.refused > 0)
            at = at[refused[at] == 0]
            refused[at] = refusals.refused[at].astype(np.int16) + len(reasons)
            heard.append((len(reasons), refusals))
            reasons.extend(refusals.reasons)
    notes = tuple(note for _, refusals in heard for note in refusals.notes)
    bad = np.flatnonzero(refused > 0)
    if not len(bad):
        return FilterAnswer(question.names, question.slots, notes=notes)
    numbers = refused[bad]
    counts: dict[Reason, int] = {}
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    told: dict[int, tuple[dict[str, str], str]] = {}
    for number, amount in enumerate(np.bincount(numbers).tolist()):
        if amount:
            reason, text = reasons[number - 1]
            counts[reason] = counts.get(reason, 0) + amount
            told[number] = unresolvable if reason.kind is Kind.UNRESOLVABLE else failed, f"{reason}: {text}"

    def detail(index: int) -> str:
        number = int(refused[index])
        said = [refusals for offset, refusals in heard if offset < number]
        return said[-1].detail(index) if said else ""

    if not enforce:
        return FilterAnswer(question.names, question.slots, counts=counts, notes=notes, detail=detail)
    passed, slots = _without(question.names, bad.tolist()), question.slots[refused == 0]
    desk.finder.keep(passed, question.snapshot.topology, slots)
    for index, number in zip(bad.tolist(), numbers.tolist(), strict=True):
        into, text = told[number]
        into[question.names[index]] = text
    error = "" if passed else _error(counts)
    return FilterAnswer(
        passed,
        slots,
        failed,
        unresolvable,
        error,
        counts,
        notes,
        detail,
    )


def _without(names: Sequence[str], refused: Sequence[int]) -> list[str]:
    """The names but for those at `refused`, which are in order; few are refused, so whole runs are copied."""
    passed: list[str] = []
    begin = 0
    for at in refused:
        passed += names[begin:at]
        begin = at + 1
    passed += names[begin:]
    return passed


def _error(counts: Mapping[Reason, int]) -> str:
    """Nothing is left: a passing reason makes the answer an Error, which is retried without an event."""
    if not any(reason.kind is Kind.PASSING for reason in counts):
        return ""
    said = ", ".join(f"{amount} {reason}" for reason, amount in sorted(counts.items()))
    return f"no node now: {said}"
