"""Devices by driver, product and state are those of a count one by one."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from extender.api.resource import Device, DeviceAttribute, DeviceTaint
from extender.inventory.ledger import Ledger
from extender.verbs.counting import DeviceCounter
from extender.verbs.fleet import fleet
from tests.inventory.objects import claim, device, node, result, slice_of
from tests.verbs.counted import device_states

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


def test_a_page_has_the_totals_of_the_whole_fleet_by_product() -> None:
    book = Ledger(ignored_drivers=())
    book.replaced("Node", [node(f"n{n}") for n in range(3)], ())
    for n, model in enumerate(("H100", "L4", "L4")):
        product = {"productName": DeviceAttribute(string=model)}
        named = [Device(name=f"gpu-{i}", attributes=product) for i in (0, 1)]
        book.upserted("ResourceSlice", slice_of(f"s{n}", f"n{n}", named, node=f"n{n}"))
    book.upserted("ResourceClaim", claim("c", [result("n2", "gpu-1")]))
    counter = DeviceCounter()
    for after in ("", "n0", "n1"):
        page = fleet(book.snapshot(), after, 1, counter=counter)
        assert [(row.product, row.total, row.free, row.taken) for row in page.totals] == [
            ("H100", 2, 2, 0),
            ("L4", 4, 3, 1),
        ]
