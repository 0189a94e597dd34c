"""What /metrics says of the ledger is what a count of everything says."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from extender.api.resource import DeviceTaint
from extender.inventory.ledger import Ledger
from extender.verbs.fleet import device_states
from extender.wiring.gauges import DeviceCounter, LedgerGauges
from tests.inventory.objects import claim, device, node, result, slice_of

events = st.lists(
    st.tuples(
        st.sampled_from(["slice", "broken slice", "wide slice", "gone", "claim", "free", "taint"]),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=25,
)


def apply(book: Ledger, what: str, n: int, number: int) -> None:
    """One event about node n."""
    names = [f"gpu-{i}" for i in range(number)]
    match what:
        case "slice":
            book.upserted("ResourceSlice", slice_of(f"s{n}", f"n{n}", names, node=f"n{n}"))
        case "broken slice":
            book.upserted("ResourceSlice", slice_of(f"s{n}", f"n{n}", names, node=f"n{n}", count=2))
        case "wide slice":
            driver = "nic.example.com"
            book.upserted("ResourceSlice", slice_of(f"w{n}", f"w{n}", names, driver=driver, all_nodes=True))
        case "gone":
            book.deleted("ResourceSlice", slice_of(f"s{n}", f"n{n}", node=f"n{n}"))
        case "claim":
            book.upserted("ResourceClaim", claim(f"c{n}", [result(f"n{n}", f"gpu-{number}")]))
        case "free":
            book.upserted("ResourceClaim", claim(f"c{n}"))
        case _:
            tainted = device("gpu-0", taints=[DeviceTaint("bad", "", "NoSchedule")])
            book.upserted("ResourceSlice", slice_of(f"s{n}", f"n{n}", [tainted, "gpu-1"], node=f"n{n}"))


@given(events)
def test_devices_by_state_are_those_of_a_count_one_by_one(happened: list[tuple[str, int, int]]) -> None:
    book = Ledger(ignored_drivers=())
    book.replaced("Node", [node(f"n{n}") for n in range(3)], ())
    counter = DeviceCounter()
    for event in happened:
        apply(book, *event)
        snapshot = book.snapshot()
        assert counter.count(snapshot) == Counter(device_states(snapshot))


def test_the_age_is_that_of_the_snapshot_in_use() -> None:
    now = 100.0
    book = Ledger(ignored_drivers=())
    gauges = LedgerGauges(book, lambda: {"Node": True}, lambda: now)
    gauges.look()
    now = 107.0
    assert gauges.read().snapshot_age == 7
    book.upserted("Node", node("n"))
    reading = gauges.read()
    assert (reading.snapshot_age, reading.objects["Node"], reading.synced) == (0, 1, {"Node": True})
