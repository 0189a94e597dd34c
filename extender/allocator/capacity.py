"""Consumable capacity: what a request takes from a device, and whether that still fits.

Owns the arithmetic of upstream's consumable_capacity.go with its int64 rules. Never: which devices are tried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from extender.api.quantity import Quantity, QuantityError

from .candidates import Capacity
from .state import Consumption

_INT64_MAX: Final = (1 << 63) - 1
_BEYOND: Final = "capacity request cannot be represented in the device's range arithmetic"
_NEGATIVE: Final = "capacity value is negative"
_MAX_QUANTITY: Final = Quantity(_INT64_MAX)


class CapacityFault(Exception):  # noqa: N818 - upstream's errCapacityRequestNotRepresentable, fatal for the pod
    """A request that no device should be tried for: it can't be represented, or comes out negative."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def calculate_consumed(requested: Quantity | None, capacity: Capacity, *, fractional: bool) -> Quantity:
    """Return what a request takes: its amount rounded up, else the policy's default, else everything.

    Raise CapacityFault when the request or what it rounds up to can't be represented.
    """
    if requested is None:
        return capacity.value if capacity.default is None else capacity.default
    if capacity.has_range and capacity.low is not None:
        return _round_up_range(requested, capacity, capacity.low, fractional=fractional)
    if capacity.valid_values is not None:
        return next((value for value in capacity.valid_values if requested <= value), requested)
    return requested


def _round_up_range(requested: Quantity, capacity: Capacity, low: Quantity, *, fractional: bool) -> Quantity:
    if requested < low:
        return low
    step = capacity.step
    if step is None:
        return requested
    if uses_milli(capacity, fractional=fractional):
        milli = safe_milli_value(requested)
        if milli is None:
            raise CapacityFault(f"{_BEYOND}: request {requested} is not a representable milli value")
        rounded = _round_up(milli, low.milli_value(), step.milli_value(), guard_negative=True)
        if rounded is None:
            raise CapacityFault(
                f"{_BEYOND}: rounding request {requested} up to the next step passes the milli-value range"
            )
        if rounded % 1000 == 0:
            return Quantity(rounded // 1000, format=step.format)
        return Quantity(rounded, -3, format=step.format)
    if requested > _MAX_QUANTITY:
        raise CapacityFault(f"{_BEYOND}: request {requested} exceeds MaxInt64")
    rounded = _round_up(requested.value(), low.value(), step.value(), guard_negative=False)
    if rounded is None:
        raise CapacityFault(f"{_BEYOND}: rounding request {requested} up to the next step passes MaxInt64")
    return Quantity(rounded, format=step.format)


def _round_up(requested: int, low: int, step: int, *, guard_negative: bool) -> int | None:
    """The next value on the grid, in int64 as upstream computes it; None where its guard says too large.

    For a negative `low`, which the API refuses, upstream's guard wraps around or (integers) is left out.
    """
    if step == 0:
        raise CapacityFault("requestPolicy.validRange.step is zero")  # upstream would divide by it
    added = _wrapped(requested - low)
    count = _quotient(added, step) + (1 if added % step else 0)
    if (low >= 0 or guard_negative) and count > _quotient(_wrapped(_INT64_MAX - low), step):
        return None
    return _wrapped(low + step * count)


def _quotient(value: int, divisor: int) -> int:
    """Integer division towards zero."""
    quotient = abs(value) // abs(divisor)
    return quotient if (value < 0) == (divisor < 0) else -quotient


def _wrapped(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def uses_milli(capacity: Capacity, *, fractional: bool) -> bool:
    """Tell whether a range is computed in thousandths: the feature is on and min, max and step allow it."""
    if not fractional:
        return False
    for bound in (capacity.low, capacity.high):
        if bound is not None and safe_milli_value(bound) is None:
            return False
    if capacity.step is None:
        return True
    step = safe_milli_value(capacity.step)
    return step is not None and step >= 1


def safe_milli_value(quantity: Quantity) -> int | None:
    """Return a quantity in thousandths, or None when that loses something."""
    milli = quantity.milli_value()
    return milli if quantity.cmp(Quantity(milli, -3)) == 0 else None


def violates_policy(consumed: Quantity, capacity: Capacity, *, fractional: bool) -> bool:
    """Tell whether an amount breaks the request policy; the policy's own default never does."""
    if not capacity.has_policy:
        return False
    if capacity.default is not None and consumed.is_identical(capacity.default):
        return False
    if capacity.has_range:
        return _violates_range(consumed, capacity, fractional=fractional)
    if capacity.valid_values:
        return all(consumed.cmp(value) != 0 for value in capacity.valid_values)
    return False


def _violates_range(consumed: Quantity, capacity: Capacity, *, fractional: bool) -> bool:
    if capacity.high is not None and consumed > capacity.high:
        return True
    if capacity.step is None:
        return False
    low = capacity.low if capacity.low is not None else Quantity(0)
    if uses_milli(capacity, fractional=fractional):
        amount = safe_milli_value(consumed)
        if amount is None:
            return True
        start, step = low.milli_value(), capacity.step.milli_value()
    else:
        amount, start, step = consumed.value(), low.value(), capacity.step.value()
    return step == 0 or _wrapped(amount - start) % step != 0


def resolve_consumption(
    requests: Mapping[str, Quantity], capacities: Mapping[str, Capacity], *, fractional: bool
) -> dict[str, Quantity] | None:
    """Return what a request takes of every capacity of a device, None when the device can't serve it.

    Faults come before refusals, so that the order of capacities does not matter: raise CapacityFault for a
    request which can't be represented. Of several faults the first by name is reported (upstream: any).
    """
    if any(name not in capacities for name in requests):
        return None
    consumed = {}
    for name, capacity in capacities.items():
        try:
            amount = calculate_consumed(requests.get(name), capacity, fractional=fractional)
        except CapacityFault as fault:
            raise CapacityFault(f"capacity {json.dumps(name, ensure_ascii=False)}: {fault.text}") from fault
        if amount.sign() < 0:
            raise CapacityFault(f"capacity {json.dumps(name, ensure_ascii=False)}: {_NEGATIVE}")
        consumed[name] = amount
    for name, capacity in capacities.items():
        if violates_policy(consumed[name], capacity, fractional=fractional):
            return None
    return consumed


def fits(
    consumed: Consumption,
    capacities: Mapping[str, Capacity],
    allocated: Consumption | None = None,
    allocating: Consumption | None = None,
) -> bool:
    """Tell whether a consumption fits beside what claims hold already and what this attempt has picked.

    Raise QuantityError for sums too wide to be written out, where the capacity is as wide as that.
    """
    for name, amount in consumed.items():
        room, total = capacities[name].value, amount
        try:
            for other in (allocated, allocating):
                if other and name in other:
                    total = other[name].add(total)
        except QuantityError:
            if amount > room:
                return False
            raise
        if total > room:
            return False
    return True
