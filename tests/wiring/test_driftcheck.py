"""Drift is what two fresh lists say alike; it is counted, named, and never holds the loop for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import structlog
from prometheus_client import CollectorRegistry

from extender.inventory.drift import Drift
from extender.inventory.ledger import Ledger
from extender.kube.client import ApiClient
from extender.kube.kinds import NODE, POD, RESOURCE_SLICE, Kind, KubernetesObject
from extender.kube.pace import Pace
from extender.model.errors import KubeError
from extender.model.ids import ObjectKey
from extender.observability.metrics import Metrics
from extender.wiring.driftcheck import SECOND_LOOK_SECONDS, DriftCheck
from tests.inventory.objects import fresh, node, slice_of
from tests.kube.scripted_api import ScriptedApi, Step, answer, refuse

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"


@pytest_asyncio.fixture
async def client(api: ScriptedApi) -> AsyncIterator[ApiClient]:
    async with ApiClient(api.configuration()) as made:
        yield made


class Checking:
    """A check of these kinds, and what it waited for and counted."""

    def __init__(self, client: ApiClient, ledger: Ledger, *kinds: Kind[Any]) -> None:
        self.registry = CollectorRegistry()
        self.waits: list[float] = []
        self.enough = asyncio.Event()
        watched: dict[Kind[KubernetesObject], str] = dict.fromkeys(kinds or (NODE,), "v1")
        self.check = DriftCheck(
            ledger,
            client,
            lambda: watched,
            Metrics(self.registry, "1"),
            pace=Pace(sleep=self._sleep, chance=lambda: 0.0),
            every=300,
            page_size=100,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if len(self.waits) == 3:
            self.enough.set()
            await asyncio.Event().wait()

    def counted(self, kind: str, difference: str) -> float | None:
        labels = {"kind": kind, "difference": difference}
        return self.registry.get_sample_value("berth_inventory_drift_objects", labels)


def listed(*objects: Any, more: str = "") -> Step:
    return answer(
        200, {"metadata": {"resourceVersion": "9", "continue": more}, "items": msgspec.to_builtins(objects)}
    )


def of(*names: str) -> frozenset[ObjectKey]:
    return frozenset(ObjectKey("", name) for name in names)


async def test_a_ledger_that_is_right_has_no_drift(api: ScriptedApi, client: ApiClient) -> None:
    book = fresh()
    book.replaced("Node", [node("a"), node("b")], ())
    api.on("GET", NODES, listed(node("a"), more="next"), listed(node("b")))
    checking = Checking(client, book)
    assert await checking.check.check() == {"Node": Drift()}
    assert checking.waits == []
    assert [checking.counted("Node", what) for what in ("missing", "extra", "different")] == [0, 0, 0]
    stamp = checking.registry.get_sample_value("berth_inventory_drift_check_timestamp_seconds")
    assert stamp == pytest.approx(time.time(), abs=60)


async def test_what_two_lists_find_is_counted_and_named(api: ScriptedApi, client: ApiClient) -> None:
    book = fresh()
    book.replaced("Node", [node("same"), node("gone"), node("changed")], ())
    api.on("GET", NODES, listed(node("same"), node("new"), node("changed", {"cpu": "9"})))
    checking = Checking(client, book)
    with structlog.testing.capture_logs() as logs:
        found = await checking.check.check()
    assert found["Node"] == Drift(of("new"), of("gone"), of("changed"))
    assert checking.waits == [SECOND_LOOK_SECONDS]
    assert [checking.counted("Node", what) for what in ("missing", "extra", "different")] == [1, 1, 1]
    assert {line["difference"]: line["some"] for line in logs if "some" in line} == {
        "missing": ["/new"],
        "extra": ["/gone"],
        "different": ["/changed"],
    }


async def test_what_only_the_first_list_finds_was_a_matter_of_timing(
    api: ScriptedApi, client: ApiClient
) -> None:
    book = fresh()
    book.replaced("Node", [node("a")], ())
    api.on("GET", NODES, listed(), listed(node("a")))
    checking = Checking(client, book)
    assert await checking.check.check() == {"Node": Drift()}
    assert checking.counted("Node", "extra") == 0


async def test_an_object_that_can_not_be_read_is_not_called_vanished(
    api: ScriptedApi, client: ApiClient
) -> None:
    book = fresh()
    book.replaced("Node", [node("a")], ())
    broken = {"metadata": {"name": "a"}, "status": {"allocatable": 7}}
    api.on("GET", NODES, answer(200, {"metadata": {}, "items": [broken]}))
    assert await Checking(client, book).check.check() == {"Node": Drift()}


async def test_pods_are_listed_with_the_selector_of_their_watch(api: ScriptedApi, client: ApiClient) -> None:
    api.on("GET", PODS, listed())
    await Checking(client, fresh(), POD).check.check()
    assert api.requests[0].query["fieldSelector"] == POD.field_selector
    assert api.requests[0].query["limit"] == "100"


async def test_a_list_that_fails_is_a_fault_of_the_check_and_the_next_one_comes(
    api: ScriptedApi, client: ApiClient
) -> None:
    api.on("GET", NODES, refuse(500))
    checking = Checking(client, fresh())
    with pytest.raises(KubeError):
        await checking.check.check()
    api.on("GET", NODES, refuse(500), listed())
    with structlog.testing.capture_logs() as logs:
        running = asyncio.create_task(checking.check.run())
        await asyncio.wait_for(checking.enough.wait(), 20)
        running.cancel()
    assert [line["event"] for line in logs] == ["drift could not be checked"]
    assert checking.waits == [300, 300, 300]


async def test_others_run_while_thousands_of_objects_are_compared(
    api: ScriptedApi, client: ApiClient
) -> None:
    """The number of turns that others get is measured, not time: this machine has other work."""
    devices = [f"gpu-{number}" for number in range(8)]
    slices = [slice_of(f"s{n}", f"n{n}", devices, node=f"n{n}", version="1") for n in range(2000)]
    book = fresh()
    book.replaced("ResourceSlice", slices, ())
    api.on("GET", "/apis/resource.k8s.io/v1/resourceslices", listed(*slices))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)  # one turn of the loop

    task = asyncio.create_task(other())
    checking = Checking(client, book, RESOURCE_SLICE)
    assert await checking.check.check() == {"ResourceSlice": Drift()}
    task.cancel()
    assert turns > 10
