"""Marks: brought up to date step by step they are what they would be if all were worked out again."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.scoring.marks import Marks
from extender.scoring.thresholds import Thresholds
from tests.verbs.live import Live, gpu
from tests.verbs.steps import NAMES, STEPS, Course, Step

RULES = (Thresholds(), Thresholds(temperatureC=60, eccQuietHours=0.01))


@given(STEPS, st.lists(st.sampled_from(RULES), min_size=1, max_size=3))
@settings(max_examples=200)
def test_made_step_by_step_they_are_what_is_made_at_once(steps: list[Step], rules: list[Thresholds]) -> None:
    course = Course()
    live = course.live
    marks = Marks(live.lookout.store.columns)
    for at, step in enumerate(steps):
        course.take(step)
        live.now += 1.0
        outlook = live.lookout.look(live.ledger.snapshot().topology, live.now)
        thresholds = rules[at % len(rules)]
        marks.look(outlook, thresholds, live.now)
        fresh = Marks(live.lookout.store.columns)
        fresh.look(outlook, thresholds, live.now)
        assert np.array_equal(marks.terms, fresh.terms)
        assert np.array_equal(marks.score, fresh.score)
        assert (marks.neutral, marks.anything) == (fresh.neutral, fresh.anything)


def test_they_are_kept_for_a_second_and_then_follow_what_was_read() -> None:
    live = Live(NAMES)
    live.tell_all()
    marks = Marks(live.lookout.store.columns)

    def least() -> float:
        outlook = live.lookout.look(live.ledger.snapshot().topology, live.now)
        marks.look(outlook, Thresholds(), live.now)
        return float(marks.score.min())

    idle = least()
    live.tell("n0", gpu("n0", 0, throttle=64), gpu("n0", 1))
    live.now += 0.9
    assert least() == idle
    live.now += 0.2
    assert least() < idle


def test_a_reading_goes_stale_with_no_sample_coming() -> None:
    live = Live(NAMES)
    live.tell("n0", gpu("n0", 0, utilisation_gpu=100), gpu("n0", 1))
    live.tell("n1", gpu("n1", 0), gpu("n1", 1))
    live.now += 40
    live.tell("n1", gpu("n1", 0), gpu("n1", 1))
    topology = live.ledger.snapshot().topology
    marks = Marks(live.lookout.store.columns)
    marks.look(live.lookout.look(topology, live.now), Thresholds(), live.now)
    busy = float(marks.score.min())
    version = marks.version
    live.now += 5.5
    marks.look(live.lookout.look(topology, live.now), Thresholds(), live.now)
    assert marks.version > version
    assert busy < float(marks.score.min()) < float(marks.neutral)
