"""Load that does not show yet: kept from look to look it is what it would be counted from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from extender.scoring.load import Load
from extender.scoring.marks import Marks
from extender.scoring.thresholds import Thresholds
from tests.verbs.steps import STEPS, Course, Step

HALF_LIFE = 60.0
SLIGHT = 0.005  # of a score: what a second of decay makes of a whole device's load, and no more


@given(STEPS)
@settings(max_examples=200)
def test_kept_from_look_to_look_it_is_what_is_counted_from_nothing(steps: list[Step]) -> None:
    course = Course()
    live = course.live
    live.tell_all()
    marks, load = Marks(live.lookout.store.columns), Load(live.placements, HALF_LIFE)
    for step in steps:
        course.take(step)
        topology, assumed = live.ledger.snapshot().topology, list(course.assumed.items())
        marks.look(live.lookout.look(topology, live.now), Thresholds(), live.now)
        kept = load.look(topology, marks, assumed, live.now)
        fresh = Load(live.placements, HALF_LIFE).look(topology, marks, assumed, live.now)
        assert np.allclose(kept, fresh, rtol=0, atol=SLIGHT)


def test_a_pod_makes_its_device_busy_and_the_others_of_its_node_a_little() -> None:
    course = Course()
    live = course.live
    live.tell_all()
    course.take(Step("assume", "n0", 0))
    topology = live.ledger.snapshot().topology
    marks, load = Marks(live.lookout.store.columns), Load(live.placements, HALF_LIFE)
    marks.look(live.lookout.look(topology, live.now), Thresholds(), live.now)
    assumed = list(course.assumed.items())
    less = marks.score[:-1] - load.look(topology, marks, assumed, live.now)[:-1]
    own, beside = topology.devices_of(topology.slot_of["n0"]).tolist()
    assert [load.of(own), load.of(beside)] == [1.5, 0.5]
    assert less[[own, beside]].tolist() == pytest.approx([0.3, 0.15])  # no less idle than not at all
    assert np.count_nonzero(less) == 2
    assert np.array_equal(load.look(topology, marks, [], live.now), marks.score)
