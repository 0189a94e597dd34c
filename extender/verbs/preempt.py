"""preempt: the candidates that kube-scheduler found, less the nodes that we would refuse all the same.

Victims are never added or changed. A node that we would refuse after the evictions costs pods their lives for
nothing (kubernetes#105720), so whatever filter refuses now is left out, passing reasons too.
"""

from __future__ import annotations

from extender.verbs.desk import Desk, Question
from extender.verbs.filter import filter_nodes


def nodes_to_drop(desk: Desk, question: Question, *, enforce: bool) -> set[str]:
    """Names of the candidates that filter would refuse."""
    answer = filter_nodes(desk, question, enforce=enforce)
    return {*answer.failed, *answer.unresolvable}
