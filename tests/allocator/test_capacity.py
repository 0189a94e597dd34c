"""The unit facts of upstream's capacity arithmetic (data/allocator-units.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.allocator.candidates import Capacity
from extender.allocator.capacity import (
    CapacityFault,
    calculate_consumed,
    fits,
    resolve_consumption,
    safe_milli_value,
    uses_milli,
    violates_policy,
)
from extender.api.quantity import Quantity
from extender.api.resource import DeviceCapacity

_UNITS = json.loads((Path(__file__).parent / "data" / "allocator-units.json").read_text())


def _cases(function: str) -> list[Any]:
    return [
        pytest.param(unit["input"], unit["expected"], id=unit["name"])
        for unit in _UNITS
        if unit["function"] == function
    ]


def _capacity(wire: dict[str, Any]) -> Capacity:
    return Capacity.of(msgspec.convert(wire, DeviceCapacity))


def _quantity(text: str | None) -> Quantity | None:
    return None if text is None else Quantity.parse(text)


def _quantities(wire: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in wire.items()}


@pytest.mark.parametrize(("given", "expected"), _cases("calculateConsumedCapacity"))
def test_consumed_capacity_is_upstreams(given: dict[str, Any], expected: dict[str, Any]) -> None:
    capacity, requested = _capacity(given["capacity"]), _quantity(given["requested"])
    fractional = given["fractionalCapacityRange"]
    if expected["error"]:
        with pytest.raises(CapacityFault):
            calculate_consumed(requested, capacity, fractional=fractional)
        return
    assert calculate_consumed(requested, capacity, fractional=fractional) == _quantity(expected["consumed"])


@pytest.mark.parametrize(("given", "expected"), _cases("violatesPolicy"))
def test_policies_are_violated_as_upstream_says(given: dict[str, Any], expected: dict[str, Any]) -> None:
    capacity = _capacity({"value": "0", "requestPolicy": given["requestPolicy"]})
    requested = Quantity.parse(given["requested"])
    fractional = given["fractionalCapacityRange"]
    assert violates_policy(requested, capacity, fractional=fractional) == expected["violates"]


@pytest.mark.parametrize(("given", "expected"), _cases("useMilli"))
def test_ranges_are_computed_in_thousandths_as_upstream_does(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    capacity = _capacity({"value": "0", "requestPolicy": {"validRange": given["validRange"]}})
    assert uses_milli(capacity, fractional=given["fractionalCapacityRange"]) == expected["useMilli"]


@pytest.mark.parametrize(("given", "expected"), _cases("safeMilliValue"))
def test_thousandths_are_refused_when_they_lose_something(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    wanted = None if expected["error"] else expected["milli"]
    assert safe_milli_value(Quantity.parse(given["quantity"])) == wanted


@pytest.mark.parametrize(("given", "expected"), _cases("cmpRequestOverCapacity"))
def test_a_request_that_cannot_be_represented_is_fatal_even_where_another_capacity_is_too_small(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    capacities = {name: _capacity(wire) for name, wire in given["capacity"].items()}
    requests, fractional = _quantities(given["requests"]), given["fractionalCapacityRange"]
    if expected["error"]:
        with pytest.raises(CapacityFault, match="capacity-1"):
            resolve_consumption(requests, capacities, fractional=fractional)
        return
    consumed = resolve_consumption(requests, capacities, fractional=fractional)
    taken, taking = _quantities(given["consumed"]), _quantities(given["allocating"])
    assert (consumed is not None and fits(consumed, capacities, taken, taking)) == expected["ok"]


@pytest.mark.parametrize(("given", "expected"), _cases("getConsumedCapacityFromRequest"))
def test_every_capacity_of_the_device_is_consumed(given: dict[str, Any], expected: dict[str, Any]) -> None:
    capacities = {name: _capacity(wire) for name, wire in given["capacity"].items()}
    consumed = resolve_consumption(
        _quantities(given["requests"]), capacities, fractional=given["fractionalCapacityRange"]
    )
    assert consumed == _quantities(expected["consumed"])


def test_every_unit_fact_is_used() -> None:
    assert {unit["function"] for unit in _UNITS} == {
        "calculateConsumedCapacity",
        "cmpRequestOverCapacity",
        "compatibilityGroupsAdmit",
        "getConsumedCapacityFromRequest",
        "safeMilliValue",
        "useMilli",
        "violatesPolicy",
    }


def test_a_capacity_is_found_by_exactly_the_name_that_is_asked_for() -> None:
    capacities = {"memory": _capacity({"value": "8"})}
    assert resolve_consumption(_quantities({"driver/memory": "1"}), capacities, fractional=True) is None


def test_the_policys_own_default_is_never_judged_by_the_policy() -> None:
    policy = {"default": "9", "validRange": {"min": "1", "max": "5"}}
    capacity = _capacity({"value": "20", "requestPolicy": policy})
    assert not violates_policy(calculate_consumed(None, capacity, fractional=True), capacity, fractional=True)
    assert violates_policy(Quantity.parse("9000m"), capacity, fractional=True)


def test_printing_an_amount_does_not_change_what_it_is_compared_with() -> None:
    policy = {"default": "1024Mi", "validRange": {"min": "1", "max": "5"}}
    capacity = _capacity({"value": "2Gi", "requestPolicy": policy})
    requested = Quantity.parse("1024Mi")
    assert str(requested) == "1Gi"
    assert not violates_policy(requested, capacity, fractional=True)


def test_a_step_of_zero_is_a_fault_and_no_crash() -> None:
    capacity = _capacity({"value": "8", "requestPolicy": {"validRange": {"min": "1", "step": "0"}}})
    with pytest.raises(CapacityFault, match="step is zero"):
        calculate_consumed(Quantity.parse("2"), capacity, fractional=False)


def test_a_negative_minimum_trips_the_guard_of_thousandths_as_upstream_does() -> None:
    policy = {"validRange": {"min": "-1", "step": "100m"}}
    capacity = _capacity({"value": "0", "requestPolicy": policy})
    with pytest.raises(CapacityFault, match="passes the milli-value range"):
        calculate_consumed(Quantity.parse("1Gi"), capacity, fractional=True)
    assert calculate_consumed(Quantity.parse("1"), capacity, fractional=False) == Quantity.parse("1")


def test_an_amount_of_nothing_is_no_fault() -> None:
    capacities = {"memory": _capacity({"value": "8"})}
    assert resolve_consumption(_quantities({"memory": "0"}), capacities, fractional=True) == {
        "memory": Quantity.parse("0")
    }
