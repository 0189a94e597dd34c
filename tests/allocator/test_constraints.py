"""Constraints compare values of one type only, and forget a device that is taken out again."""

from __future__ import annotations

import pytest

from extender.allocator.candidates import Candidate, candidate_of
from extender.allocator.constraints import (
    Constraint,
    DistinctScalar,
    DistinctSet,
    MatchScalar,
    MatchSet,
    published_attribute,
)
from extender.api.resource import Device, DeviceAttribute
from tests.allocator.builders import DRIVER, slice_of

NAME = f"{DRIVER}/x"


def with_value(**value: object) -> Candidate:
    """A candidate whose attribute x has this one field."""
    device = Device("gpu", attributes={"x": DeviceAttribute(**value)})  # type: ignore[arg-type]  # any field
    return candidate_of(device, slice_of([device]))


def added(constraint: Constraint, *candidates: Candidate) -> list[bool]:
    return [constraint.add(candidate, published_attribute) for candidate in candidates]


ALIKE_BUT_FOR_TYPE = [
    pytest.param({"int": 1}, {"bool": True}, id="int and bool"),
    pytest.param({"string": "1.0.0"}, {"version": "1.0.0"}, id="string and version"),
]


@pytest.mark.parametrize("kind", [MatchScalar, MatchSet])
@pytest.mark.parametrize(("one", "other"), ALIKE_BUT_FOR_TYPE)
def test_values_of_two_types_do_not_match(
    kind: type[MatchScalar | MatchSet], one: dict[str, object], other: dict[str, object]
) -> None:
    assert added(kind(NAME), with_value(**one), with_value(**other)) == [True, False]


@pytest.mark.parametrize("kind", [DistinctScalar, DistinctSet])
@pytest.mark.parametrize(("one", "other"), ALIKE_BUT_FOR_TYPE)
def test_values_of_two_types_are_distinct(
    kind: type[DistinctScalar | DistinctSet], one: dict[str, object], other: dict[str, object]
) -> None:
    assert added(kind(NAME), with_value(**one), with_value(**other)) == [True, True]


@pytest.mark.parametrize("kind", [MatchScalar, MatchSet, DistinctScalar, DistinctSet])
def test_a_device_without_the_attribute_is_refused(
    kind: type[MatchScalar | MatchSet | DistinctScalar | DistinctSet],
) -> None:
    device = Device("gpu")
    assert added(kind(NAME), candidate_of(device, slice_of([device]))) == [False]


@pytest.mark.parametrize("kind", [MatchScalar, MatchSet])
def test_a_device_that_is_taken_out_binds_nobody(kind: type[MatchScalar | MatchSet]) -> None:
    constraint = kind(NAME)
    added(constraint, with_value(int=1))
    constraint.remove()
    assert added(constraint, with_value(int=2), with_value(int=1)) == [True, False]


def test_what_lists_have_in_common_grows_again_when_a_device_is_taken_out() -> None:
    constraint = MatchSet(NAME)
    added(constraint, with_value(ints=[1, 2, 3]), with_value(ints=[2, 4]))
    constraint.remove()
    assert added(constraint, with_value(ints=[3]), with_value(int=2)) == [True, False]


def test_lists_are_distinct_when_they_share_no_value_with_any_other() -> None:
    constraint = DistinctSet(NAME)
    assert added(constraint, with_value(ints=[1, 2]), with_value(ints=[3]), with_value(int=2)) == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(("name", "found"), [(NAME, True), ("other.example.com/x", False), ("x", True)])
def test_a_bare_name_belongs_to_the_drivers_domain(name: str, found: bool) -> None:
    assert (published_attribute(with_value(int=1), name) is not None) is found
