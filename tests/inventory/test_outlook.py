"""The outlook: made step by step it is what it would be made at once, and it changes when it must."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api.telemetry import DeviceState, DriverState
from extender.inventory.outlook import Lookout
from extender.inventory.telemetry_join import join
from extender.model.reason import Reason
from tests.inventory.objects import slice_of
from tests.verbs.live import Live, gpu
from tests.verbs.live import published as device

NAMES = ("n0", "n1", "n2")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["publish", "unpublish", "tell", "lose", "gone", "stale", "forget", "wait", "look"]),
        st.sampled_from(NAMES),
        st.integers(0, 2),
    ),
    max_size=25,
)


def step(live: Live, what: str, name: str, count: int) -> None:
    if what == "publish":
        devices = [device(name, number) for number in range(count + 1)]
        live.ledger.upserted("ResourceSlice", slice_of(f"s-{name}", name, devices, node=name))
    elif what == "unpublish":
        live.ledger.deleted("ResourceSlice", slice_of(f"s-{name}", name, [], node=name))
    elif what == "tell":
        live.tell(name, *(gpu(name, number) for number in range(count + 1)))
    elif what == "lose":
        sick = msgspec.structs.replace(gpu(name, count), state=DeviceState.LOST)
        live.tell(name, *(sick if n == count else gpu(name, n) for n in range(3)))
    elif what == "stale":
        live.tell(name, driver=DriverState.ABSENT)
    elif what == "gone":
        live.ledger.deleted("Node", live.ledger._nodes.nodes[live.ledger._nodes.slot_of[name]])
        live.names.remove(name)
    elif what == "forget":
        live.lookout.store.forget(name)
        live.lookout.health.retain(live.lookout.store.uuids, live.now)
    elif what == "wait":
        live.now += 130.0 * (count + 1)
        live.lookout.health.tick(live.now)


@given(STEPS)
@settings(max_examples=150)
def test_made_step_by_step_it_is_what_is_made_at_once(steps: list[tuple[str, str, int]]) -> None:
    live = Live(NAMES)
    for what, name, count in steps:
        if name in live.names or what != "gone":
            step(live, what, name, count)
        if what == "look":
            live.lookout.look(live.ledger.snapshot().topology, live.now)
    topology = live.ledger.snapshot().topology
    live.now += 1.0
    seen = live.lookout.look(topology, live.now)
    fresh = Lookout(live.lookout.store, live.lookout.health).look(topology, live.now)
    order = topology.order
    for name in ("rows", "gpus", "unfit", "partly", "entirely"):
        assert getattr(seen, name).tolist() == getattr(fresh, name).tolist(), name
    assert (seen.sick, seen.unpublished) == (fresh.sick, fresh.unpublished)
    table = topology.table
    whole = join(
        live.lookout.store,
        [(row, table.ids[row], table.facts[row]) for row in order.tolist()],
    )
    assert seen.rows[order].tolist() == whole.rows[order].tolist()
    assert {each for _, each in seen.published_not_seen()} == set(whole.published_not_seen)
    assert {each for each in whole.seen_not_published if each[0] in topology.slot_of} == set(
        seen.seen_not_published()
    )


def test_it_is_the_same_object_until_something_changes() -> None:
    live = Live(NAMES)
    live.tell_all()
    topology = live.ledger.snapshot().topology
    first = live.lookout.look(topology, live.now)
    live.tell_all(utilisation_gpu=70)
    live.now += 5
    assert live.lookout.look(topology, live.now) is first
    live.tell("n1", driver=DriverState.ABSENT)
    assert live.lookout.look(topology, live.now) is not first


def test_what_changes_is_seen_at_once_and_in_the_gravest_words() -> None:
    live = Live(NAMES)
    live.tell_all()
    topology = live.ledger.snapshot().topology
    live.lookout.look(topology, live.now)
    live.tell("n0", gpu("n0", 0, remap_pending=1, ecc_uncorrected_volatile=2), gpu("n0", 1))
    seen = live.lookout.look(topology, live.now)
    slot = topology.slot_of["n0"]
    first, second = seen.of_slot(slot).tolist()
    assert (seen.reason(first), seen.reason(second)) == (Reason.ECC_UNCORRECTABLE, None)
    assert [f.reason for f in live.lookout.findings(seen, slot, first, live.now)] == [
        Reason.ECC_UNCORRECTABLE,
        Reason.ROW_REMAP_PENDING,
    ]
    assert seen.partly.tolist() == [True, False, False]


def test_devices_of_other_drivers_are_not_expected_and_never_sick() -> None:
    live = Live(NAMES)
    nic = slice_of("nic", "nics", ["nic-0"], node="n0", driver="nic.example.com")
    live.ledger.upserted("ResourceSlice", nic)
    live.tell_all()
    live.tell("n0", driver=DriverState.ABSENT)
    lookout = Lookout(live.lookout.store, live.lookout.health, ["nic.example.com"])
    seen = lookout.look(live.ledger.snapshot().topology, live.now)
    rows = seen.of_slot(seen.topology.slot_of["n0"]).tolist()
    said = {seen.topology.table.ids[row].device: seen.reason(row) for row in rows}
    assert said == {"nic-0": None, "gpu-0": Reason.DRIVER_STALE, "gpu-1": Reason.DRIVER_STALE}
    assert list(seen.published_not_seen()) == []
    assert bool(seen.entirely[seen.topology.slot_of["n0"]])
