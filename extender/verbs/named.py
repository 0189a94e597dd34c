"""Predicted rows as names: which request of which claim gets which device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.allocator.demand import Demand
from extender.allocator.prediction import Predictions
from extender.verbs.desk import Question
from extender.verbs.views import PredictedDevice

EXTENDED_CLAIM = "<extended-resources>"
"""Stands for the claim that kube-scheduler makes at PreBind for DRA-backed extended resources."""


def named_devices(question: Question, index: int) -> tuple[PredictedDevice, ...]:
    """Devices predicted for candidate `index`; empty when unpredicted."""
    return _name(question.demand, question.predictions, index)


def node_forecast(question: Question) -> Callable[[str], tuple[PredictedDevice, ...] | str]:
    """By node name: the predicted devices, or why there are none. Holds columns, not the snapshot."""
    names, demand, predictions = question.names, question.demand, question.predictions

    def forecast(node: str) -> tuple[PredictedDevice, ...] | str:
        try:
            index = list(names).index(node)
        except ValueError:
            return "NodeNotOffered"
        reason = predictions.reason(index)
        return str(reason) if reason is not None else _name(demand, predictions, index)

    return forecast


def _name(demand: Demand, predictions: Predictions, index: int) -> tuple[PredictedDevice, ...]:
    rows = predictions.rows(index)
    ids = predictions.topology.table.ids
    return tuple(
        PredictedDevice(claim, request, str(ids[row]))
        for (claim, request), row in zip(_owners(demand), rows, strict=False)
    )


def _owners(demand: Demand) -> Sequence[tuple[str, str]]:
    """Claim and request of each row of a prediction, in order."""
    owners: list[tuple[str, str]] = []
    for claim in demand.allocated:
        allocation = claim.status.allocation
        results = allocation.devices.results if allocation is not None else None
        owners.extend((claim.metadata.name, result.request) for result in results or ())
    for claim in demand.claims:
        for request in claim.spec.devices.requests or ():
            count = (request.exactly.count or 1) if request.exactly is not None else 1
            owners.extend((claim.metadata.name, request.name) for _ in range(count))
    return owners
