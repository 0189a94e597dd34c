"""The API server that the tests of this room script."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.kube.scripted_api import ScriptedApi


@pytest_asyncio.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    async with ScriptedApi() as scripted:
        yield scripted
