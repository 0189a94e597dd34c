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


def quantise(values: Float64) -> Int8:
    """Ranks of float64[n] as int8[n], 0..10. All equal (or a single one) is all 10; n may be 0."""
    scores = np.zeros(len(values), np.int8)
    if not len(values):
        return scores
    lowest = values.min()
    width = SAME * (values.max() - lowest)
    left = values
    best = left.max()
    for rank in range(BEST, 0, -1):
        hit = left >= best - width
        scores[hit] = rank
        left = np.where(hit, -np.inf, left)
        best = left.max()
        if best == -np.inf:
            break
    return scores


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
