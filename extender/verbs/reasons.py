"""The page docs/reasons.md: every code of a refusal or a missing prediction, made from the enumerations.

Never: a code of its own.
"""

from __future__ import annotations

from extender.allocator.prediction import Unpredicted
from extender.model.reason import Kind, Reason

NOT_OFFERED = "NodeNotOffered"
"""A pod was bound to a node that the last reply did not name."""

_ANSWERS = {
    Kind.LASTING: "`FailedNodes`",
    Kind.UNRESOLVABLE: "`FailedAndUnresolvableNodes`",
    Kind.PASSING: "`FailedNodes`; `Error` when no node is left",
}
_UNPREDICTED = {
    Unpredicted.NO_FIT: "our allocator finds no place on a node that kube-scheduler offered: it knows better,"
    " or our view is older",
    Unpredicted.FAILED: "our allocator fails where kube-scheduler did not",
    Unpredicted.GAVE_UP: "the search reached its bound of steps, or the call its bound of searches",
    Unpredicted.CLAIM_UNKNOWN: "a claim of the pod has not reached our watch",
    Unpredicted.NODE_UNKNOWN: "the node has not reached our watch",
    Unpredicted.COUNT_ONLY: "device-plugin resources: the kubelet picks the devices, only a count is known",
}


_REFUSED = """# Reasons

Made from `extender/model/reason.py` and `extender/verbs/reasons.py`; a test compares.

## Why a node is refused

A refused node is answered with `Code: text`, which kube-scheduler puts in the pod's events and condition. The
kind of a reason fixes the answer: where evicting pods can't help, preemption is kept away from the node; a
passing reason makes the whole answer an `Error` when no node is left, because kube-scheduler retries that by
itself. The same codes are the label `reason` of `berth_node_refusals_total`.

| code | kind | answer | meaning |
|---|---|---|---|
"""
_NOT_NAMED = """
## Why no device is named for a node

Such a node passes all the same. The codes are the label `reason` of `berth_predictions_total`, and stand in
`unpredicted` of explain and of decisions.

"""


def reasons_page() -> str:
    """The page as Markdown."""
    refused = [
        f"| `{reason}` | {reason.kind.value} | {_ANSWERS[reason.kind]} | {reason.meaning} |\n"
        for reason in Reason
    ]
    named = [f"- `{code}`: {_UNPREDICTED[code]}\n" for code in Unpredicted]
    named.append(f"- `{NOT_OFFERED}`: the pod was bound to a node that our last reply did not name\n")
    return "".join((_REFUSED, *refused, _NOT_NAMED, *named))
