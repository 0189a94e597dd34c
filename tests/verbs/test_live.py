"""What people see of live telemetry: in the fleet, of a node and in explain."""

from __future__ import annotations

import msgspec
import pytest

from extender.api.telemetry import DeviceState, Process
from extender.verbs.explain import explain
from extender.verbs.fleet import fleet, node_view
from extender.verbs.views import ExplainView
from tests.inventory.objects import claim, result
from tests.verbs.live import GIB, Live, annotated, asking, gpu


@pytest.fixture
def live() -> Live:
    made = Live()
    made.tell_all(utilisation_gpu=30, memory_used=20 * GIB)
    lost = msgspec.structs.replace(gpu("n0", 0), state=DeviceState.LOST)
    made.tell("n0", lost, gpu("n0", 1, utilisation_gpu=70))
    made.ledger.upserted("ResourceClaim", claim("held", [result("n0", "gpu-1")], reserved_for=["a"]))
    made.now += 3
    return made


def explained(live: Live, need: str = "") -> ExplainView:
    asked = asking()
    return explain(
        live.desk,
        annotated(asked, need) if need else asked,
        live.names,
        live.ledger.snapshot(),
        assumptions=(),
        now=live.now,
        enforce=True,
        shadow=False,
        limit=10,
        lookout=live.lookout,
    )


def test_the_fleet_shows_every_device_with_state_age_health_and_holders(live: Live) -> None:
    view = fleet(live.ledger.snapshot(), "", 10, live.lookout, live.now)
    sick, busy = view.nodes[0].telemetry
    assert (sick.device, sick.health, sick.text) == (
        "gpu.example.com/n0/gpu-0",
        ("DeviceLost",),
        "off the bus",
    )
    assert (busy.uuid, busy.state, busy.age, busy.utilisation, busy.temperature) == (
        "GPU-n0-1",
        "fresh",
        3.0,
        70,
        40,
    )
    assert (busy.health, busy.holders) == ((), ("ns/name-a",))
    assert [row.memory_used for row in view.nodes[1].telemetry] == [20 * GIB, 20 * GIB]


def test_a_node_shows_it_beside_each_device(live: Live) -> None:
    view = node_view(live.ledger.snapshot(), "n0", live.lookout, live.now)
    assert view is not None
    assert [d.telemetry.utilisation if d.telemetry else None for d in view.devices] == [0, 70]


def test_old_values_are_stale_then_absent(live: Live) -> None:
    for wait, state, value in ((50, "stale", 30), (300, "absent", None)):
        live.now += wait
        row = fleet(live.ledger.snapshot(), "", 10, live.lookout, live.now).nodes[1].telemetry[0]
        assert (row.state, row.utilisation) == (state, value)


def test_without_telemetry_nothing_is_made_up() -> None:
    live = Live()
    assert fleet(live.ledger.snapshot(), "", 10).nodes[0].telemetry == ()
    row = fleet(live.ledger.snapshot(), "", 10, live.lookout, live.now).nodes[0].telemetry[0]
    assert (row.state, row.age, row.utilisation, row.memory_used, row.health) == (
        "absent",
        None,
        None,
        None,
        (),
    )


def test_explain_shows_the_predicted_devices_and_what_is_behind_a_refusal(live: Live) -> None:
    passed, refused = explained(live).nodes
    assert (passed.name, [row.utilisation for row in passed.telemetry]) == ("n1", [30])
    assert [(judge.judge, judge.evidence[:26]) for judge in passed.judges][2] == (
        "telemetry",
        "gpu-0: idle 0.70 fresh, ro",
    )
    assert (refused.reason, refused.details) == ("DeviceLost", "gpu-0: DeviceLost: off the bus, for 3 s")
    assert [row.health for row in refused.telemetry] == [("DeviceLost",)]


def test_explain_says_which_annotation_could_not_be_used(live: Live) -> None:
    assert "annotation berth.scheduler/memory-need: 'much' is ignored" in explained(live, "much").note


def test_a_process_list_is_not_needed_to_show_memory(live: Live) -> None:
    live.tell("n1", gpu("n1", 0, memory_used=GIB, processes=[Process(1, GIB)]), gpu("n1", 1))
    row = fleet(live.ledger.snapshot(), "", 10, live.lookout, live.now).nodes[1].telemetry[0]
    assert (row.memory_used, row.memory_total) == (GIB, 80 * GIB)


def test_a_device_that_no_slice_has_is_named_in_explain_and_on_its_node(live: Live) -> None:
    live.tell("n1", *(gpu("n1", number) for number in range(3)))
    assert {node.name: node.unpublished for node in explained(live).nodes} == {"n0": (), "n1": ("GPU-n1-2",)}
    view = node_view(live.ledger.snapshot(), "n1", live.lookout, live.now)
    assert view is not None
    assert view.unpublished == ("GPU-n1-2",)


def test_a_device_that_telemetry_does_not_see_is_absent_in_explain() -> None:
    live = Live()
    live.tell("n0", *(gpu("n0", number) for number in range(2)))
    live.tell("n1", gpu("n1", 1))
    shown = {node.name: [row.state for row in node.telemetry] for node in explained(live).nodes}
    assert shown == {"n0": ["fresh"], "n1": ["absent"]}
