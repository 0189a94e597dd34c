"""Limits that a policy sets for judges."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

COOL_C = 30.0
"""At and below this a device is as cool as a judge can wish, in degrees Celsius."""


class Thresholds(BaseModel):
    """Numbers of a policy file's `thresholds`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperatureC: Annotated[float, Field(gt=COOL_C, le=200, allow_inf_nan=False)] = 85.0  # noqa: N815 - as written in the file
    """At and above this a device counts as hot as can be; between 30 and this in proportion."""

    eccQuietHours: Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)] = 1.0  # noqa: N815 - likewise
    """For so long after the count of correctable memory errors rose a device is worse than others."""
