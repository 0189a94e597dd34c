"""Predicted rows as names: which request of which claim gets which device."""

from __future__ import annotations

from collections.abc import Callable

from extender.allocator.prediction import Predictions
from extender.verbs.desk import Question
from extender.verbs.views import PredictedDevice


def named_devices(question: Question, index: int) -> tuple[PredictedDevice, ...]:
    """Devices predicted for candidate `index`; empty when unpredicted."""
    return _name(question.predictions, index)


def node_forecast(question: Question) -> Callable[[str], tuple[PredictedDevice, ...] | str]:
    """By node name: the predicted devices, or why there are none. Holds columns, not the snapshot."""
    names, predictions = question.names, question.predictions

    def forecast(node: str) -> tuple[PredictedDevice, ...] | str:
        try:
            index = list(names).index(node)
        except ValueError:
            return "NodeNotOffered"
        reason = predictions.reason(index)
        return str(reason) if reason is not None else _name(predictions, index)

    return forecast


def _name(predictions: Predictions, index: int) -> tuple[PredictedDevice, ...]:
    ids = predictions.topology.table.ids
    return tuple(
        PredictedDevice(pick.claim, pick.request, str(ids[pick.row])) for pick in predictions.picks(index)
    )
