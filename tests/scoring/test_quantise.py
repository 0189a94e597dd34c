"""Laws of the ranks that kube-scheduler gets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.scoring.quantise import SAME, first_of_best, quantise

values = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@given(values)
def test_scores_are_whole_numbers_from_0_to_10_and_the_best_is_10(scores: list[float]) -> None:
    ranks = quantise(np.array(scores))
    assert ranks.dtype == np.int8
    assert ranks.min() >= 0
    assert ranks[int(np.argmax(scores))] == ranks.max() == 10


@given(values)
def test_ranks_keep_the_order(scores: list[float]) -> None:
    ranks = quantise(np.array(scores))
    for left, rank in zip(scores, ranks, strict=True):
        for right, other in zip(scores, ranks, strict=True):
            assert rank <= other if left < right else left != right or rank == other


@given(values)
def test_more_than_one_per_cent_of_the_range_apart_is_another_rank(scores: list[float]) -> None:
    ranks = quantise(np.array(scores))
    width = SAME * (max(scores) - min(scores))
    for score, rank in zip(scores, ranks, strict=True):
        assert rank < 10 or score >= max(scores) - width


@given(values, st.floats(0.01, 100))
def test_the_scale_does_not_matter(scores: list[float], scale: float) -> None:
    tens = [round(score * 10) / 10 for score in scores]
    assert quantise(np.array(tens)).tolist() == quantise(np.array(tens) * scale).tolist()


@pytest.mark.parametrize(
    ("scores", "ranks"),
    [
        ([], []),
        ([0.3], [10]),
        ([0.5, 0.5, 0.5], [10, 10, 10]),
        ([1.0, 0.995, 0.0], [10, 10, 9]),
        ([1.0, 0.98, 0.0], [10, 9, 8]),
        ([step / 12 for step in range(13)], [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ],
)
def test_ranks_by_distinct_value(scores: list[float], ranks: list[int]) -> None:
    assert quantise(np.array(scores)).tolist() == ranks


@given(values)
def test_with_one_best_the_first_of_them_stands_alone(scores: list[float]) -> None:
    ranks = quantise(np.array(scores))
    alone = first_of_best(ranks)
    assert np.count_nonzero(alone == alone.max()) == 1
    assert int(alone.argmax()) == int(ranks.argmax())
    assert alone.min() >= 0
