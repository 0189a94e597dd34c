from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from extender.kube.client import ApiClient
from tests.kube.scripted_api import ScriptedApi


@pytest_asyncio.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    scripted = ScriptedApi()
    await scripted.start()
    try:
        yield scripted
    finally:
        await scripted.stop()


@pytest_asyncio.fixture
async def client(api: ScriptedApi) -> AsyncIterator[ApiClient]:
    async with ApiClient(api.configuration()) as made:
        yield made
