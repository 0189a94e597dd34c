"""What holds for every room: the control plane is built first, and property tests have no deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings

from tests.controlplane.build import build_controlplane

if TYPE_CHECKING:
    import pytest


def pytest_configure() -> None:
    """A shared machine pauses: how long one example took says nothing (`make bench` measures speed)."""
    settings.register_profile("berth", deadline=None)
    settings.load_profile("berth")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, so that no test's time limit has to cover a build of minutes."""
    wanted = any(item.get_closest_marker("controlplane") for item in session.items)
    if wanted and not session.config.option.collectonly:
        build_controlplane()
