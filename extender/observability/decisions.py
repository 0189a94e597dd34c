"""The decision record: the last answer that each pod got, and what became of it.

     filter reply          prioritize reply         bound, claims allocated
    ────────────────> pending ───────────> pending ───────────────────────> right | wrong | unpredicted
         ^  a newer filter reply takes the place of the older one  │
         └─────────────────────────────────────────────────────────┘

Bounded: the pod that was answered longest ago goes first. In memory only; after a restart it is empty.
Never: a look at the ledger. It is told.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace

from extender.verbs.views import DecisionView, Outcome, PredictedDevice

Forecast = Callable[[str], tuple[PredictedDevice, ...] | str]
"""By node: the devices that were predicted, or the reason why none were. Kept with the record, so it must not
hold a snapshot alive."""


def _nothing_predicted(_node: str) -> str:
    return "NoPrediction"


class DecisionRing:
    """The newest decisions by pod UID, at most `size`."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size {size}: at least 1")
        self._size = size
        self._records: OrderedDict[str, tuple[DecisionView, Forecast]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def record(self, decision: DecisionView, forecast: Forecast = _nothing_predicted) -> None:
        """Take down a filter reply; it replaces what was known of the pod and becomes the newest."""
        self._records.pop(decision.pod_uid, None)
        self._records[decision.pod_uid] = (decision, forecast)
        if len(self._records) > self._size:
            self._records.popitem(last=False)

    def scored(self, pod_uid: str, node: str, score: int, forecast: Forecast | None = None) -> None:
        """Add the best node of a prioritize reply; unknown and settled pods are left alone.

        A newer `forecast` takes the place of the one that came with the filter reply.
        """
        held = self._records.get(pod_uid)
        if held is not None and held[0].outcome == "pending":
            self._records[pod_uid] = (replace(held[0], node=node, score=score), forecast or held[1])

    def settle(self, pod_uid: str, node: str, devices: Iterable[PredictedDevice]) -> Outcome | None:
        """The pod was bound to `node` with `devices`: judge the prediction made for that node.

        Devices are compared as a set of (claim, request, device): their order in a claim says nothing.
        Returns the outcome, or None when the pod is unknown or had been settled before.
        """
        held = self._records.get(pod_uid)
        if held is None or held[0].outcome != "pending":
            return None
        decision, forecast = held
        named = forecast(node)
        if isinstance(named, str):
            settled = replace(decision, node=node, predicted=(), unpredicted=named, outcome="unpredicted")
        else:
            outcome: Outcome = "right" if set(named) == set(devices) else "wrong"
            settled = replace(decision, node=node, predicted=named, unpredicted="", outcome=outcome)
        self._records[pod_uid] = (settled, _nothing_predicted)
        return settled.outcome

    def get(self, pod_uid: str) -> DecisionView | None:
        """The record of a pod."""
        held = self._records.get(pod_uid)
        return None if held is None else held[0]

    def newest(self, limit: int, pod: str = "") -> list[DecisionView]:
        """At most `limit` records, the newest first; `pod` is a UID, a name or namespace/name, "" for all."""
        if pod in self._records:
            return [self._records[pod][0]][:limit]
        found: list[DecisionView] = []
        for decision, _ in reversed(self._records.values()):
            if len(found) >= limit:
                break
            if not pod or pod in (decision.pod_name, f"{decision.pod_namespace}/{decision.pod_name}"):
                found.append(decision)
        return found
