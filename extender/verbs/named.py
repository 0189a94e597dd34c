"""Predicted rows as names: which request of which claim gets which device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from extender.allocator.prediction import Predictions, Unpredicted
from extender.verbs.desk import Question
from extender.verbs.reasons import NOT_OFFERED
from extender.verbs.views import PredictedDevice


def named_devices(question: Question, index: int) -> tuple[PredictedDevice, ...]:
    """Devices predicted for candidate `index`; empty when unpredicted."""
    return _name(question.predictions, index)


def node_forecast(question: Question) -> Callable[[str], tuple[PredictedDevice, ...] | str]:
    """By node name: the predicted devices, or why there are none. Holds no names and no snapshot."""
    predictions = question.predictions

    def forecast(node: str) -> tuple[PredictedDevice, ...] | str:
        slot = predictions.topology.slot_of.get(node)
        if slot is None:
            return str(Unpredicted.NODE_UNKNOWN)
        at = np.nonzero(predictions.slots == slot)[0]
        if not len(at):
            return NOT_OFFERED
        index = int(at[0])
        reason = predictions.reason(index)
        return str(reason) if reason is not None else _name(predictions, index)

    return forecast


def _name(predictions: Predictions, index: int) -> tuple[PredictedDevice, ...]:
    ids = predictions.topology.table.ids
    return tuple(
        PredictedDevice(pick.claim, pick.request, str(ids[pick.row])) for pick in predictions.picks(index)
    )
