from __future__ import annotations

import asyncio
import time as real_time
from collections.abc import Callable
from typing import Any

import pytest

from extender.kube.client import ApiClient
from extender.kube.lease import LeaseElector, LeaseTimings, unique_identity
from extender.kube.pace import Pace
from tests.kube.recording import FakeTime, until
from tests.kube.scripted_api import Reply, Request, ScriptedApi, Stored

LEASES = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases"
SHORT = LeaseTimings(duration=1.0, renew_deadline=0.7, retry_period=0.2)


@pytest.fixture(autouse=True)
def store(api: ScriptedApi) -> Stored:
    return Stored(api, LEASES, "berth")


class Candidate:
    def __init__(
        self, client: ApiClient, identity: str, pace: Pace, timings: LeaseTimings | None = None
    ) -> None:
        self.log: list[str] = []
        self.elector = LeaseElector(
            client,
            namespace="berth-system",
            name="berth",
            identity=identity,
            pace=pace,
            on_started_leading=lambda term: self.log.append(f"start {term}"),
            on_stopped_leading=lambda: self.log.append("stop"),
            timings=timings,
        )

    async def step(self) -> None:
        await self.elector._step()


Make = Callable[[str, FakeTime], Candidate]


@pytest.fixture
def make(client: ApiClient) -> Make:
    return lambda identity, time: Candidate(client, identity, time.pace())


def spec(store: Stored) -> dict[str, Any]:
    assert store.object is not None
    found: dict[str, Any] = store.object["spec"]
    return found


async def test_the_first_candidate_creates_the_lease_and_leads(store: Stored, make: Make) -> None:
    time = FakeTime()
    a = make("a", time)
    await a.step()
    assert a.log == ["start 1"]
    assert a.elector.holds(time.now)
    assert spec(store)["holderIdentity"] == "a"
    assert spec(store)["leaseDurationSeconds"] == 10
    assert spec(store)["renewTime"] == "2026-01-01T00:16:40.000000Z"


async def test_a_held_lease_is_left_alone_for_its_duration_and_taken_after(store: Stored, make: Make) -> None:
    a_time, b_time = FakeTime(), FakeTime(now=5_000_000.0)
    a, b = make("a", a_time), make("b", b_time)
    await a.step()
    await b.step()
    b_time.now += 9.9
    await b.step()
    assert b.log == []
    b_time.now += 0.1
    await b.step()
    assert b.log == ["start 2"]
    assert spec(store)["leaseTransitions"] == 2


async def test_a_lease_binds_for_as_long_as_its_holder_promised_not_as_we_would(
    store: Stored, client: ApiClient
) -> None:
    a_time, b_time = FakeTime(), FakeTime()
    a = Candidate(client, "a", a_time.pace(), LeaseTimings(duration=60, renew_deadline=40, retry_period=5))
    b = Candidate(client, "b", b_time.pace())
    await a.step()
    await b.step()
    b_time.now += 59.9
    await b.step()
    assert b.log == []
    b_time.now += 0.1
    await b.step()
    assert b.log == ["start 2"]
    assert spec(store)["leaseDurationSeconds"] == 10


async def test_a_renewal_seen_by_a_follower_starts_its_wait_anew(store: Stored, make: Make) -> None:
    time = FakeTime()
    a, b = make("a", time), make("b", time)
    await a.step()
    await b.step()
    for _ in range(5):
        time.now += 6
        await a.step()
        await b.step()
    assert (a.log, b.log) == (["start 1"], [])
    assert spec(store)["leaseTransitions"] == 1


async def test_wall_clocks_that_differ_by_days_decide_nothing(client: ApiClient) -> None:
    a_time, b_time = FakeTime(), FakeTime()
    b_time_ahead = FakeTime(now=1000.0 + 3 * 86_400)
    a = Candidate(client, "a", a_time.pace())
    pace = Pace(clock=lambda: b_time.now, wall=b_time_ahead.wall, sleep=b_time.sleep, chance=lambda: 0.5)
    b = Candidate(client, "b", pace)
    await a.step()
    await b.step()
    b_time.now += 5
    await b.step()
    assert b.log == []


async def test_a_leader_that_hears_nothing_stops_before_a_follower_may_start(make: Make) -> None:
    time = FakeTime()
    a, b = make("a", time), make("b", time)
    await a.step()
    await b.step()
    time.now += 7
    assert not a.elector.holds(time.now)
    await b.step()
    assert b.log == []


async def test_the_lease_counts_from_before_the_request_was_sent(
    api: ScriptedApi, store: Stored, make: Make
) -> None:
    time = FakeTime()

    async def slowly(request: Request, reply: Reply) -> None:
        time.now += 5
        await store._post(request, reply)

    api.on("POST", LEASES, slowly)
    a = make("a", time)
    await a.step()
    assert a.log == ["start 1"]
    assert a.elector.holds(1006.9)
    assert not a.elector.holds(1007.0)


async def test_an_answer_that_comes_too_late_makes_no_leader(
    api: ScriptedApi, store: Stored, make: Make
) -> None:
    time = FakeTime()

    async def too_slowly(request: Request, reply: Reply) -> None:
        time.now += 8
        await store._post(request, reply)

    api.on("POST", LEASES, too_slowly)
    a = make("a", time)
    await a.step()
    assert a.log == []
    await a.step()
    assert a.log == ["start 2"]


async def test_a_conflict_by_another_holder_ends_leading_at_once(store: Stored, make: Make) -> None:
    time = FakeTime()
    a = make("a", time)
    await a.step()
    assert store.object is not None
    store.set({**store.object, "spec": {**spec(store), "holderIdentity": "intruder"}})
    time.now += 2
    await a.step()
    assert a.log == ["start 1", "stop"]
    assert not a.elector.holds(time.now)


async def test_a_conflict_by_a_changed_label_only_is_renewed_over_and_kept(store: Stored, make: Make) -> None:
    time = FakeTime()
    a = make("a", time)
    await a.step()
    assert store.object is not None
    store.set({**store.object, "metadata": {**store.object["metadata"], "labels": {"x": "y"}}})
    time.now += 5
    await a.step()
    assert a.log == ["start 1"]
    assert a.elector.holds(time.now + 6)
    assert store.object["metadata"]["labels"] == {"x": "y"}


async def test_a_deleted_lease_ends_leading(store: Stored, make: Make) -> None:
    a = make("a", FakeTime())
    await a.step()
    store.object = None
    await a.step()
    assert a.log == ["start 1", "stop"]


async def test_a_released_lease_is_taken_at_once(make: Make) -> None:
    time = FakeTime()
    a, b = make("a", time), make("b", time)
    await a.step()
    await b.step()
    await a.elector._release()
    assert a.log == ["start 1", "stop"]
    await b.step()
    assert b.log == ["start 2"]


async def test_two_candidates_at_once_make_one_leader(make: Make) -> None:
    time = FakeTime()
    both = [make("a", time), make("b", time)]
    await asyncio.gather(*(each.step() for each in both), return_exceptions=True)
    assert sorted(len(each.log) for each in both) == [0, 1]


async def test_during_an_outage_the_leader_stops_in_time_and_leads_a_new_term_after(
    store: Stored, client: ApiClient
) -> None:
    a = Candidate(client, "a", Pace(), SHORT)
    running = asyncio.create_task(a.elector.run())
    await until(lambda: a.log == ["start 1"])
    store.down = True
    went_down = real_time.monotonic()
    await until(lambda: a.log == ["start 1", "stop"])
    assert real_time.monotonic() - went_down < 1.0
    store.down = False
    await until(lambda: a.log == ["start 1", "stop", "start 2"])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert a.log[-1] == "stop"
    assert spec(store)["holderIdentity"] == ""


async def test_when_the_leader_dies_the_other_takes_over(api: ScriptedApi, client: ApiClient) -> None:
    doomed = ApiClient(api.configuration())
    a = Candidate(doomed, "a", Pace(), SHORT)
    b = Candidate(client, "b", Pace(), SHORT)
    first = asyncio.create_task(a.elector.run())
    await until(lambda: a.log == ["start 1"])
    second = asyncio.create_task(b.elector.run())
    await until(lambda: b.elector._lease != {})
    # Killed, not stopped: nothing is released.
    a.elector._leading = False
    first.cancel()
    died = real_time.monotonic()
    await until(lambda: b.log == ["start 2"], 5)
    assert real_time.monotonic() - died < 2.0
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    await doomed.close()


@pytest.mark.parametrize("wrong", [(10, 10, 2), (10, 7, 6), (10, 7, 0), (1.5, 1, 0.2), (0.9, 0.5, 0.1)])
def test_timings_that_could_make_two_leaders_are_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"Lease|leaseDurationSeconds"):
        LeaseTimings(*wrong)


def test_identities_differ_between_processes_of_one_pod() -> None:
    assert unique_identity("berth-0") != unique_identity("berth-0")
