from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.admission.quarantine import RELIST_SECONDS, Memory, Quarantine, plan
from extender.admission.ward import Ward
from extender.model.device import DeviceID
from extender.model.errors import KubeError
from extender.model.reason import Reason

QUIET_S = 300.0
DEVICES = [DeviceID("gpu.example.com", f"node-{n // 8}", f"gpu-{n % 8}") for n in range(24)]
SICK = Reason.DEVICE_LOST


def make_ward(
    *sick: DeviceID,
    at: float = 0.0,
    doubtful: frozenset[DeviceID] = frozenset(),
    heard: bool = True,
    published: int = len(DEVICES),
) -> Ward:
    return Ward(at, dict.fromkeys(sick, SICK), doubtful, published, lambda _: heard)


@dataclass
class Rules:
    """The API server's rules of ours, in memory."""

    held: dict[DeviceID, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    lists: int = 0
    leads: bool = True
    broken: bool = False

    async def ours(self) -> Mapping[DeviceID, str]:
        self.lists += 1
        if self.broken:
            raise KubeError("the API server is away")
        return dict(self.held)

    async def taint(self, device: DeviceID, reason: str) -> str | None:
        if not self.leads:
            return None
        self.written.append(f"+{device.device} {reason}")
        self.held[device] = f"rule-{device}"
        return self.held[device]

    async def clear(self, name: str) -> bool:
        if not self.leads:
            return False
        self.written.append(f"-{name}")
        self.held = {device: rule for device, rule in self.held.items() if rule != name}
        return True


class Loop:
    """A quarantine and the world that it looks at."""

    def __init__(self, rules: Rules, share: float = 0.5) -> None:
        self.rules = rules
        self.ward = make_ward()
        self.enforce = True
        self.quarantine = Quarantine(
            rules,
            lambda: self.ward,
            enforce=lambda: self.enforce,
            share=share,
            quiet_s=QUIET_S,
            interval_s=1.0,
        )

    async def see(self, ward: Ward) -> None:
        self.ward = ward
        await self.quarantine.once()


async def test_a_sick_device_gets_one_rule_and_loses_it_when_it_is_well() -> None:
    loop = Loop(Rules())
    await loop.see(make_ward(DEVICES[0], at=0))
    await loop.see(make_ward(DEVICES[0], at=1))
    assert loop.rules.written == ["+gpu-0 DeviceLost"]
    await loop.see(make_ward(at=2))
    assert loop.rules.held == {}


async def test_a_rule_that_another_process_made_is_taken_over_not_written_again() -> None:
    rules = Rules({DEVICES[0]: "rule"})
    loop = Loop(rules)
    await loop.see(make_ward(DEVICES[0], at=0))
    assert rules.written == []
    await loop.see(make_ward(at=5))
    assert rules.written == ["-rule"]


async def test_a_rule_whose_device_this_process_never_saw_sick_stays_for_the_quiet_time() -> None:
    rules = Rules({DEVICES[0]: "rule"})
    loop = Loop(rules)
    for at in (0.0, QUIET_S - 1):
        await loop.see(make_ward(at=at))
        assert rules.held
    await loop.see(make_ward(at=QUIET_S))
    assert not rules.held


async def test_a_device_that_falls_silent_keeps_its_rule_for_the_quiet_time() -> None:
    loop = Loop(Rules())
    for at in (0.0, 1.0):
        await loop.see(make_ward(DEVICES[0], at=at))
    for at in (2.0, 1 + QUIET_S):
        await loop.see(make_ward(at=at, heard=False))
        assert loop.rules.held
    await loop.see(make_ward(at=2 + QUIET_S, heard=False))
    assert not loop.rules.held


async def test_the_quiet_time_begins_anew_when_the_device_is_sick_again() -> None:
    loop = Loop(Rules({DEVICES[0]: "rule"}))
    await loop.see(make_ward(at=0, heard=False))
    await loop.see(make_ward(DEVICES[0], at=100))
    for at in (200.0, 199 + QUIET_S):
        await loop.see(make_ward(at=at, heard=False))
        assert loop.rules.held
    await loop.see(make_ward(at=200 + QUIET_S, heard=False))
    assert not loop.rules.held


async def test_devices_of_a_node_that_is_sick_as_a_whole_get_no_rule_and_lose_none() -> None:
    loop = Loop(Rules())
    for at in (0.0, 1.0):
        await loop.see(make_ward(DEVICES[0], at=at))
    for at in (2.0, 10 * QUIET_S, 20 * QUIET_S):
        await loop.see(make_ward(at=at, doubtful=frozenset(DEVICES[:8])))
        assert loop.rules.held.keys() == {DEVICES[0]}


async def test_no_more_than_the_share_is_quarantined_and_the_rest_is_told() -> None:
    loop = Loop(Rules(), share=0.1)
    await loop.see(make_ward(*DEVICES[:5]))
    assert len(loop.rules.held) == 2  # of 24
    assert loop.quarantine.held_back == 3


async def test_graver_reasons_come_first() -> None:
    ward = replace(make_ward(), sick={DEVICES[0]: Reason.ROW_REMAP_PENDING, DEVICES[1]: Reason.DEVICE_LOST})
    assert plan(ward, (), Memory(), 1 / 24, QUIET_S).taint == ((DEVICES[1], Reason.DEVICE_LOST),)


async def test_when_vetoes_are_off_nothing_is_quarantined() -> None:
    loop = Loop(Rules())
    await loop.see(make_ward(DEVICES[0]))
    loop.enforce = False
    await loop.see(make_ward(DEVICES[0], DEVICES[1], at=1))
    assert loop.rules.held == {}


async def test_without_the_lease_nothing_is_noted_as_written() -> None:
    loop = Loop(Rules(leads=False))
    await loop.see(make_ward(DEVICES[0]))
    assert loop.quarantine.tainted == 0
    loop.rules.leads = True
    await loop.see(make_ward(DEVICES[0], at=1))
    assert loop.quarantine.tainted == 1


async def test_a_fault_of_the_api_server_is_counted_and_tried_again() -> None:
    loop = Loop(Rules(broken=True))
    await loop.see(make_ward(DEVICES[0]))
    assert (loop.quarantine.failed, loop.rules.written) == (1, [])
    loop.rules.broken = False
    await loop.see(make_ward(DEVICES[0], at=1))
    assert loop.rules.held


async def test_a_write_whose_answer_was_lost_is_looked_for_before_it_is_repeated() -> None:
    class Losing(Rules):
        async def taint(self, device: DeviceID, reason: str) -> str | None:
            await super().taint(device, reason)
            raise KubeError("no answer")

    loop = Loop(Losing())
    for at in (0.0, 1.0, 2.0):
        await loop.see(make_ward(DEVICES[0], at=at))
    assert loop.rules.written == ["+gpu-0 DeviceLost"]
    assert (loop.quarantine.failed, loop.quarantine.tainted, loop.rules.lists) == (1, 1, 2)


async def test_a_rule_that_somebody_deleted_is_written_again() -> None:
    loop = Loop(Rules())
    await loop.see(make_ward(DEVICES[0], at=0))
    loop.rules.held.clear()
    await loop.see(make_ward(DEVICES[0], at=RELIST_SECONDS))
    assert loop.rules.held.keys() == {DEVICES[0]}


@given(
    looks=st.lists(st.tuples(st.sets(st.sampled_from(DEVICES)), st.integers(0, 400)), max_size=12),
    share=st.floats(0.01, 1.0),
)
def test_whatever_falls_sick_the_share_holds_and_only_the_sick_are_tainted(
    looks: list[tuple[set[DeviceID], int]], share: float
) -> None:
    ours: set[DeviceID] = set()
    memory = Memory()
    at = 0.0
    for sick, later in looks:
        at += later
        todo = plan(make_ward(*sick, at=at), ours, memory, share, QUIET_S)
        assert {device for device, _ in todo.taint} <= sick - ours
        assert not set(todo.clear) & sick
        ours = (ours - set(todo.clear)) | {device for device, _ in todo.taint}
        assert len(ours) <= share * len(DEVICES) + 1e-6


@pytest.mark.parametrize("published", [0, 1, 9])
def test_a_fleet_too_small_for_the_share_gets_no_rule(published: int) -> None:
    todo = plan(make_ward(DEVICES[0], published=published), (), Memory(), 0.1, QUIET_S)
    assert (todo.taint, todo.held_back) == ((), 1)
