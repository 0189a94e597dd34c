"""Who holds a device."""

from __future__ import annotations

import pytest

from extender.inventory.ledger import Ledger
from extender.model.device import DeviceID
from tests.inventory.objects import DRIVER, claim, fresh, is_taken, node, result, slice_of


@pytest.fixture
def book() -> Ledger:
    ledger = fresh()
    ledger.replaced("Node", [node("n1")], [])
    ledger.replaced("ResourceSlice", [slice_of("s", "p", ["a", "b"], node="n1")], [])
    return ledger


def holders(ledger: Ledger, name: str) -> list[str]:
    return [holding.claim.name for holding in ledger.snapshot().held_by(DeviceID(DRIVER, "p", name))]


def test_an_allocation_takes_its_devices(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    assert is_taken(book.snapshot(), "p", "a") == (True, False)
    assert is_taken(book.snapshot(), "p", "b") == (False, False)


def test_an_admin_result_holds_nothing(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a", admin_access=True)]))
    assert is_taken(book.snapshot(), "p", "a") == (False, False)


def test_a_share_is_no_whole_device_and_the_last_one_frees_it(book: Ledger) -> None:
    for number in range(2):
        book.upserted("ResourceClaim", claim(f"c{number}", [result("p", "a", share_id=f"s-{number}")]))
    assert is_taken(book.snapshot(), "p", "a") == (False, True)
    book.deleted("ResourceClaim", claim("c0"))
    assert is_taken(book.snapshot(), "p", "a") == (False, True)
    book.deleted("ResourceClaim", claim("c1"))
    assert is_taken(book.snapshot(), "p", "a") == (False, False)


def test_a_device_with_two_holders_is_taken_until_both_are_gone(book: Ledger) -> None:
    """kube-scheduler's record is a set and believes the device free when the first one goes."""
    book.upserted("ResourceClaim", claim("c0", [result("p", "a")]))
    book.upserted("ResourceClaim", claim("c1", [result("p", "a")]))
    assert sorted(holders(book, "a")) == ["c0", "c1"]
    book.deleted("ResourceClaim", claim("c0"))
    assert (holders(book, "a"), is_taken(book.snapshot(), "p", "a")) == (["c1"], (True, False))


@pytest.mark.parametrize(
    ("first", "second", "double"), [(None, None, 1), ("s-1", None, 1), (None, "s-1", 1), ("s-1", "s-2", 0)]
)
def test_a_device_of_two_claims_is_double_granted_unless_both_hold_shares(
    book: Ledger, first: str | None, second: str | None, double: int
) -> None:
    book.upserted("ResourceClaim", claim("c0", [result("p", "a", share_id=first)]))
    assert book.double_granted == 0
    book.upserted("ResourceClaim", claim("c1", [result("p", "a", share_id=second)]))
    assert book.double_granted == double
    book.deleted("ResourceClaim", claim("c0"))
    assert book.double_granted == 0


def test_a_device_that_changed_hands_before_a_relist_is_not_double_granted(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("z", [result("p", "a")]))
    book.replaced("ResourceClaim", [claim("a", [result("p", "a")])], [])
    assert book.double_granted == 0


def test_a_claim_that_holds_a_device_twice_frees_it_whole(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a"), result("p", "a")]))
    book.upserted("ResourceClaim", claim("c"))
    assert holders(book, "a") == []


def test_a_cleared_allocation_frees_its_devices(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    book.upserted("ResourceClaim", claim("c"))
    assert is_taken(book.snapshot(), "p", "a") == (False, False)


def test_an_allocation_can_move(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    book.upserted("ResourceClaim", claim("c", [result("p", "b")]))
    assert (holders(book, "a"), holders(book, "b")) == ([], ["c"])


def test_a_relist_without_a_claim_frees_its_devices(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a")]))
    book.replaced("ResourceClaim", [], [])
    assert holders(book, "a") == []


def test_a_claim_made_again_under_its_name_holds_only_what_the_new_one_holds(book: Ledger) -> None:
    book.upserted("ResourceClaim", claim("c", [result("p", "a")], uid="old"))
    book.replaced("ResourceClaim", [claim("c", [result("p", "b")], uid="new")], [])
    assert (holders(book, "a"), holders(book, "b")) == ([], ["c"])
