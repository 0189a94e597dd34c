"""The oracle, built once and running for the whole session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle.build import build_oracle
from tests.oracle.client import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    with Oracle(build_oracle()) as running:
        yield running
