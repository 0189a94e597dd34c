"""explain: what filter and prioritize would say of each node, with every judge's number. A what-if."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.api.core import Pod
from extender.inventory.inflight import Assumption
from extender.inventory.outlook import Lookout
from extender.inventory.snapshot import Snapshot
from extender.scoring.bench import Ruling
from extender.verbs.desk import Desk, Question
from extender.verbs.filter import FilterAnswer, filter_nodes
from extender.verbs.live import telemetry_of, unpublished_on
from extender.verbs.named import named_devices
from extender.verbs.prioritize import prioritize
from extender.verbs.views import ExplainNode, ExplainView, JudgeRow, TelemetryRow, Verdict


def explain(
    desk: Desk,
    pod: Pod,
    names: Sequence[str],
    snapshot: Snapshot,
    *,
    assumptions: Sequence[tuple[str, Assumption]],
    now: float,
    enforce: bool,
    shadow: bool,
    limit: int,
    lookout: Lookout | None = None,
) -> ExplainView:
    """Explain a pod against `names`: the best `limit` nodes first, refused ones last.

    kube-scheduler's own filters (taints, affinity, cpu) are not evaluated: it offers only nodes that pass.
    """
    question = desk.question(pod, names, snapshot, assumptions, now)
    answer = filter_nodes(desk, question, enforce=True)
    passed = set(answer.passed)
    indices = [index for index, name in enumerate(names) if name in passed]
    ruling = prioritize(desk, _narrowed(desk, question, indices, assumptions))
    ranked = sorted(range(len(indices)), key=lambda i: (-ruling.total[i], names[indices[i]]))
    nodes = [_passing(question, indices[i], ruling, i, lookout) for i in ranked[:limit]]
    nodes.extend(_refused(question, answer, limit - len(nodes), lookout))
    return ExplainView(
        pod_namespace=pod.metadata.namespace,
        pod_name=pod.metadata.name,
        workload_class=question.workload,
        candidates=len(names),
        passed=len(answer.passed),
        nodes=tuple(nodes),
        rejected={str(reason): nodes for reason, nodes in answer.counts.items()},
        shadow=shadow,
        note=_note(desk, question, answer, enforce=enforce, shadow=shadow),
    )


def _narrowed(
    desk: Desk,
    question: Question,
    indices: Sequence[int],
    assumptions: Sequence[tuple[str, Assumption]],
) -> Question:
    """The question that prioritize would get: only the nodes which passed filter."""
    if len(indices) == len(question.names):
        return question
    names = [question.names[index] for index in indices]
    return desk.question(question.pod, names, question.snapshot, assumptions, question.now)


def _passing(
    question: Question, index: int, ruling: Ruling, position: int, lookout: Lookout | None
) -> ExplainNode:
    reason = question.predictions.reason(index)
    note = question.predictions.notes.get(index, "")
    unpredicted = "" if reason is None else f"{reason}: {note}" if note else str(reason)
    return ExplainNode(
        name=question.names[index],
        verdict="passed",
        predicted=named_devices(question, index),
        unpredicted=unpredicted,
        judges=tuple(
            JudgeRow(o.judge, o.weight, round(float(o.scores[position]), 6), o.evidence(position))
            for o in ruling.opinions
        ),
        total=round(float(ruling.total[position]), 6),
        score=int(ruling.scores[position]),
        telemetry=_live(question, index, lookout),
        unpublished=unpublished_on(lookout, question.snapshot, question.names[index], question.now),
    )


def _refused(
    question: Question, answer: FilterAnswer, room: int, lookout: Lookout | None
) -> list[ExplainNode]:
    said: list[tuple[str, str, Verdict]] = [
        *((name, text, "refused") for name, text in answer.failed.items()),
        *((name, text, "unresolvable") for name, text in answer.unresolvable.items()),
    ]
    index_of = {name: index for index, name in enumerate(question.names)}
    return [
        ExplainNode(
            name=name,
            verdict=verdict,
            reason=text.split(":", 1)[0],
            text=text,
            predicted=named_devices(question, index_of[name]),
            details=answer.detail(index_of[name]),
            telemetry=_live(question, index_of[name], lookout),
            unpublished=unpublished_on(lookout, question.snapshot, name, question.now),
        )
        for name, text, verdict in said[: max(room, 0)]
    ]


def _live(question: Question, index: int, lookout: Lookout | None) -> tuple[TelemetryRow, ...]:
    rows = list(dict.fromkeys(question.predictions.rows(index)))
    return telemetry_of(lookout, question.snapshot, rows, question.now)


def _note(desk: Desk, question: Question, answer: FilterAnswer, *, enforce: bool, shadow: bool) -> str:
    meta, spec = question.pod.metadata, question.pod.spec
    if meta.namespace in desk.scope.excluded_namespaces:
        return f"namespace {meta.namespace} is excluded: every node passes and scores 0"
    if spec.scheduler_name not in desk.scope.schedulers:
        return f"schedulerName {spec.scheduler_name!r} is not ours: every node passes and scores 0"
    if shadow:
        return "shadow mode: every node passes and scores 0"
    if not enforce and answer.counts:
        return "vetoes are switched off: every node passes"
    said = list(answer.notes)
    if np.count_nonzero(question.slots < 0):
        said.append(f"{np.count_nonzero(question.slots < 0)} of the nodes are not known here")
    elif answer.error:
        said.append(answer.error)
    return "; ".join(said)
