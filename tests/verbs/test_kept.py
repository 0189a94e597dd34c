"""What filter and prioritize keep from call to call (marks, load, slots, places) changes no answer."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.inventory.outlook import Lookout
from extender.scoring.bench import Ruling
from extender.verbs.desk import Desk
from extender.verbs.filter import FilterAnswer, filter_nodes
from extender.verbs.prioritize import prioritize
from tests.verbs.live import asking
from tests.verbs.steps import NAMES, STEPS, Course, Step

SLIGHT = 1e-3  # of a score: load that is too small to count is dropped at another moment


def answers(
    course: Course, desk: Desk, names: list[str], claims: tuple[str, ...]
) -> tuple[FilterAnswer, Ruling]:
    live = course.live
    snapshot, assumed = live.ledger.snapshot(), list(course.assumed.items())
    filtered = filter_nodes(
        desk, desk.question(asking(*claims), names, snapshot, assumed, live.now), enforce=True
    )
    left = list(map(str, filtered.passed))
    return filtered, prioritize(desk, desk.question(asking(*claims), left, snapshot, assumed, live.now))


@given(STEPS, st.lists(st.permutations((*NAMES, "unknown")), min_size=1, max_size=3))
@settings(max_examples=150)
def test_a_desk_that_was_asked_before_answers_as_one_that_was_not(
    steps: list[Step], orders: list[tuple[str, ...]]
) -> None:
    course = Course()
    live = course.live
    live.tell_all()
    for at, step in enumerate(steps):
        names, claims = list(orders[at % len(orders)]), ("c", "d")[: 1 + at % 2]
        course.take(step)
        answers(course, live.desk, names, claims)
        live.now += 1.0  # for so long marks and load may be kept as they are
        filtered, ruling = answers(course, live.desk, names, claims)
        lookout = Lookout(live.lookout.store, live.lookout.health)
        unkept, fresh = answers(course, live.new_desk(lookout), names, claims)
        assert list(filtered.passed) == list(unkept.passed)
        assert (filtered.failed, filtered.unresolvable) == (unkept.failed, unkept.unresolvable)
        assert filtered.slots is not None
        assert unkept.slots is not None
        assert filtered.slots.tolist() == unkept.slots.tolist()
        assert [one.weight for one in ruling.opinions] == [one.weight for one in fresh.opinions]
        assert np.allclose(ruling.total, fresh.total, rtol=0, atol=SLIGHT)
