"""Quantities as the wire carries them, read for the allocator.

Owns the step from wire value to Quantity. Never: arithmetic, which is the quantity's own.
"""

from __future__ import annotations

from extender.api.quantity import Quantity, QuantityError
from extender.api.resource import QuantityText

from .outcome import Abort


def quantity_of(value: QuantityText) -> Quantity:
    """Read a wire quantity; raise Abort when it is none (the API server would never have stored it)."""
    try:
        return Quantity.parse(repr(value)) if isinstance(value, float) else Quantity.of(value)
    except QuantityError as error:
        raise Abort(f"quantity {value!r}: {error}") from error


def nano_of(value: QuantityText) -> int:
    """Read a wire quantity as an exact integer in units of 1e-9; raise Abort when it is none."""
    try:
        return quantity_of(value).nano()
    except QuantityError as error:
        raise Abort(f"quantity {value!r}: {error}") from error
