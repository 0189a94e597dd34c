"""From floats to kube-scheduler's integers: by rank of the distinct value.

Best 10, next 9, ..., eleventh and below 0: 11 levels keep the argmax whatever the scale. Values within 1 % of
the range are one rank, so noise makes no order.

kube-scheduler breaks a tie of the best at random, and nobody knows how before the allocation is written. So a
policy may have the first of them keep its rank alone (`ties: first`, the default): candidates come in the
order in which parallel filters finished, which is random enough, and the next pod can be told what this one
takes. With `ties: random` ties stay ties.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from extender.scoring.candidates import Float64

Int8 = npt.NDArray[np.int8]

BEST = 10
SAME = 0.01  # of the range
_NEAR = 1.5 * BEST  # widths of a rank


def quantise(values: Float64) -> Int8:
    """Ranks of float64[n] as int8[n], 0..10. All equal (or a single one) is all 10; n may be 0."""
    scores = np.zeros(len(values), np.int8)
    if not len(values):
        return scores
    floors = _floors(values, SAME * (values.max() - values.min()))
    for floor in floors:
        scores += values >= floor
    scores += np.int8(BEST - len(floors))
    return scores


def _floors(values: Float64, width: float) -> list[float]:
    """The least value of each rank, best first, at most ten; every value is at or above one of fewer."""
    floors: list[float] = []
    rest = values
    while len(rest) and len(floors) < BEST:
        near = rest[rest >= rest.max() - _NEAR * width]  # the next ranks lie here, if values lie close
        while len(near) and len(floors) < BEST:
            floors.append(float(near.max()) - width)
            near = near[near < floors[-1]]
        rest = rest[rest < floors[-1]] if len(floors) < BEST else rest[:0]
    return floors


def first_of_best(scores: Int8) -> Int8:
    """The first of several best keeps its rank, all others go down by one (0 stays); int8[n]."""
    if not len(scores):
        return scores
    best = int(scores.argmax())
    if np.count_nonzero(scores == scores[best]) == 1:
        return scores
    lowered: Int8 = np.maximum(scores - np.int8(1), 0).astype(np.int8)
    lowered[best] = scores[best]
    return lowered
