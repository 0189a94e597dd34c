"""The small scheduler does what kube-scheduler does with an extender's answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from extender.allocator.columns import SelectorColumns
from extender.allocator.features import Features
from extender.api.core import Pod
from extender.selectors import Environment
from extender.sim.generated import POD_KINDS as KINDS
from extender.sim.generated import asking, claim, fleet, node_name, pod
from extender.sim.memory import MemoryApi
from extender.sim.scheduler import SmallScheduler
from tests.sim.sinks import Told

Answer = dict[str, Any] | list[Any]


class Extender:
    """Answers with what a test gives it, and keeps the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        paths = ("/extender/filter", "/extender/prioritize", "/api/v1/explain")
        self.app = Starlette(routes=[Route(path, self._handler(path), methods=["POST"]) for path in paths])

    def _handler(self, path: str) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            self.asked.append((path.rsplit("/", 1)[-1], await request.json()))
            return JSONResponse(self.answers[path.rsplit("/", 1)[-1]])

        return handle


@pytest.fixture
def extender() -> Extender:
    return Extender()


@pytest.fixture
def api() -> MemoryApi:
    made = MemoryApi(Told())
    made.load(fleet(3, kinds=3, plugin_every=0, pending=1), [])
    return made


@pytest_asyncio.fixture
async def scheduler(extender: Extender, api: MemoryApi) -> AsyncIterator[SmallScheduler]:
    transport = httpx.ASGITransport(extender.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as http:
        yield SmallScheduler(api, http, SelectorColumns(Environment()), Features.default("1.37"))


def made(api: MemoryApi, wanted: Pod) -> Pod:
    stored = api.create("Pod", wanted)
    assert isinstance(stored, Pod)
    return stored


async def test_the_best_scored_of_the_nodes_that_passed_is_taken(
    extender: Extender, api: MemoryApi, scheduler: SmallScheduler
) -> None:
    passed = [node_name(0), node_name(2)]
    extender.answers = {
        "filter": {"NodeNames": passed, "FailedNodes": {node_name(1): "Busy: no"}},
        "prioritize": [{"Host": node_name(0), "Score": 3}, {"Host": node_name(2), "Score": 10}],
    }
    placed = await scheduler.schedule(made(api, asking(KINDS[0], 0)))
    assert (placed.node, placed.score, placed.offered) == (node_name(2), 10, 3)
    assert placed.devices == (f"{node_name(2)}/gpu-4",)
    assert placed.reasons == {node_name(1): "Busy: no"}
    assert [verb for verb, _ in extender.asked] == ["filter", "prioritize"]
    assert extender.asked[1][1]["NodeNames"] == passed


async def test_with_one_node_left_it_asks_for_no_scores(
    extender: Extender, api: MemoryApi, scheduler: SmallScheduler
) -> None:
    extender.answers = {"filter": {"NodeNames": [node_name(1)]}}
    placed = await scheduler.schedule(made(api, asking(KINDS[0], 0)))
    assert (placed.node, placed.score) == (node_name(1), None)
    assert [verb for verb, _ in extender.asked] == ["filter"]


async def test_an_error_ends_the_attempt(
    extender: Extender, api: MemoryApi, scheduler: SmallScheduler
) -> None:
    extender.answers = {"filter": {"NodeNames": [node_name(1)], "Error": "not synced"}}
    placed = await scheduler.schedule(made(api, asking(KINDS[0], 0)))
    assert (placed.node, dict(placed.reasons)) == ("", {"": "not synced"})
    assert api.get("ResourceClaim", "default", "claim-1-0").status.allocation is None


async def test_where_no_node_is_left_berth_is_asked_why(
    extender: Extender, api: MemoryApi, scheduler: SmallScheduler
) -> None:
    refused = {node_name(number): "Sick: gpu" for number in range(3)}
    nodes = [{"name": name, "verdict": "refused", "reason": "Sick"} for name in refused]
    extender.answers = {
        "filter": {"NodeNames": [], "FailedAndUnresolvableNodes": refused},
        "explain": {"nodes": nodes},
    }
    placed = await scheduler.schedule(made(api, asking(KINDS[0], 0)))
    assert (placed.node, placed.reasons, placed.explained) == ("", refused, {"Sick": 3})
    assert extender.asked[-1][1]["name"] == "claim-1-0"


async def test_nodes_without_room_are_not_offered(
    extender: Extender, api: MemoryApi, scheduler: SmallScheduler
) -> None:
    extender.answers = {"explain": {"nodes": [{"verdict": "passed", "unpredicted": "NoFit"}]}}
    plugin = await scheduler.schedule(made(api, pod("plugin", plugin=1)))
    assert set(plugin.reasons.values()) == {"Insufficient nvidia.com/gpu"}
    api.create("ResourceClaim", claim("eight", 8))
    eight = await scheduler.schedule(made(api, pod("eight", "eight")))
    assert set(eight.reasons.values()) == {"cannot allocate all claims"}
    assert eight.explained == {"unpredicted NoFit": 1}
    assert [verb for verb, _ in extender.asked] == ["explain", "explain"]


async def test_devices_of_one_pod_are_taken_for_the_next(
    extender: Extender, api: MemoryApi, scheduler: SmallScheduler
) -> None:
    extender.answers = {"filter": {"NodeNames": [node_name(0)]}}
    devices: list[str] = []
    for number in range(4):
        api.create("ResourceClaim", claim(f"one-{number}"))
        placed = await scheduler.schedule(made(api, pod(f"p{number}", f"one-{number}")))
        devices.extend(placed.devices)
    assert devices == [f"{node_name(0)}/gpu-{number}" for number in range(4, 8)]
    [consumer] = api.get("ResourceClaim", "default", "one-0").status.reserved_for
    assert consumer.name == "p0"
