"""Settings of telemetry's other sources; those of the main settings are handed on, the others stand here.

Never: reads files or the environment itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(gt=0, le=86400)]


class DcgmSettings(BaseModel):
    """Scrapes of dcgm-exporter."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    interval_s: Seconds = 15.0
    """Between two scrapes of a node."""
    collect_s: Seconds = 30.0
    """The exporter's own collect interval: its texts carry no times, so readings count as that old."""
    frozen_after_s: Seconds = 120.0
    """A GPU whose energy counter stands still for so long is repeated, not read."""
    timeout_s: Seconds = 5.0
    """One scrape."""
    most_bytes: Annotated[int, Field(gt=0)] = 8 << 20
    """Longest text that is read."""
    concurrency: Annotated[int, Field(gt=0, le=256)] = 16
    """Scrapes at the same time."""


class PrometheusSettings(BaseModel):
    """One query against an existing Prometheus."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    url: str
    """Base URL of its HTTP API."""
    query: str = '{__name__=~"DCGM_(FI_DEV|FI_PROF|EXP)_.*"}[90s]'
    """A range selector, so that every value comes with the time of its scrape."""
    interval_s: Seconds = 30.0
    """Between two queries."""
    collect_s: Seconds = 30.0
    """The exporter's collect interval, added to the age of what Prometheus scraped."""
    frozen_after_s: Seconds = 120.0
    """As for scrapes."""
    timeout_s: Seconds = 20.0
    """One query."""
    most_bytes: Annotated[int, Field(gt=0)] = 256 << 20
    """Longest answer that is read: a fleet of 5,000 nodes x 8 is about 150 MB."""
    ca_file: Path | None = None
    """CA bundle for https; the system's when absent."""
    token_file: Path | None = None
    """A bearer token, sent over https or to this machine only."""
