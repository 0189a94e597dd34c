"""Node agents on a fake driver, as real processes, while a real kube-scheduler places pods by Berth."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

import msgspec
import pytest

from tests.controlplane.cluster import ControlPlane
from tests.endtoend.agents import HEARTBEAT_S
from tests.endtoend.wards import FIRST, PATIENCE_S, SECOND, Settings, Wards, post, until, wards
from tests.fake_nvml.fakenvml import build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.endtoend.agents import Agent

    State = dict[str, int | None]

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(600)]

WITHIN_S = HEARTBEAT_S + 3.0
"""A heartbeat, and what a poll, a deadline of one second and a loaded machine add."""

NUDGE = "berth.scheduler/nudge"

# By name: the reason, and what the driver is made to say; numbers after err are NVML's return codes.
OF_ONE_DEVICE: dict[str, tuple[str, State]] = {
    "XID 79": ("DeviceUnhealthy", {}),
    "a lost GPU": ("DeviceLost", {"gpu0.err.*": 15}),
    "a GPU that needs a reset": ("DeviceUnhealthy", {"gpu0.err.*": 16}),
    "uncorrectable ECC": ("EccUncorrectable", {"gpu0.ecc_unc_vol": 1}),
    "a pending row remap": ("RowRemapPending", {"gpu0.remap_pending": 1}),
    "a failed row remap": ("RowRemapPending", {"gpu0.remap_failed": 1}),
    "recovery action": ("DeviceUnhealthy", {"gpu0.field.230": 1}),
}
OF_THE_DRIVER: dict[str, tuple[str, State]] = {
    "a hung call": ("DeviceUnhealthy", {"gpu0.delay_ms.*": -1}),
    "a call in uninterruptible sleep": ("DeviceUnhealthy", {"gpu0.delay_ms.nvmlDeviceGetTemperature": -2}),
    "a library that hangs as a whole": ("DeviceUnhealthy", {"serialize": 1, "gpu0.delay_ms.*": -1}),
    "another driver than the library": (
        "DriverStale",
        {"err.nvmlDeviceGetCount_v2": 18, "err.nvmlInitWithFlags": 18},
    ),
    "another driver, and a hung start": (
        "DriverStale",
        {"err.nvmlDeviceGetCount_v2": 18, "delay_ms.nvmlInitWithFlags": -1},
    ),
    "a missing driver": ("DriverStale", {}),
}
FAULTS = {**OF_ONE_DEVICE, **OF_THE_DRIVER}
WELL: State = {"gpu0.ecc_unc_vol": 0, "gpu0.remap_pending": 0, "gpu0.remap_failed": 0, "gpu0.field.230": 0}


def inject(agent: Agent, fault: str) -> None:
    match fault:
        case "XID 79":
            agent.gpus.xid(0, 79)
        case "a missing driver":
            agent.gpus.unload()
        case _:
            agent.gpus.put(FAULTS[fault][1])


def heal(agent: Agent) -> None:
    said = {key for _, told in FAULTS.values() for key in told}
    agent.gpus.put({**dict.fromkeys(said), **WELL, "gpu0.mem_used": 0, "gpu0.procs": None})


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: these rights must not help other tests."""
    with ControlPlane(folder=tmp_path_factory.mktemp("telemetry")) as running:
        yield running


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="class")
def world(
    request: pytest.FixtureRequest,
    plane: ControlPlane,
    library: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Wards]:
    settings: Settings = request.cls.SETTINGS
    yield from wards(plane, tmp_path_factory.mktemp("world"), library, settings)


@pytest.fixture
def here(world: Wards) -> Iterator[Wards]:
    """The world, healthy and empty before and after each test."""
    world.wait_open("1Gi")
    world.wait_known(0)  # the gauges follow within a second
    yield world
    heal(world.agents[FIRST])
    world.clear()


class TestVetoes:
    """Without quarantine."""

    SETTINGS: ClassVar[Settings] = {}

    def test_a_pod_goes_to_the_node_that_it_prefers_while_all_is_well(self, here: Wards) -> None:
        assert here.place("first", prefer=FIRST) == f"{FIRST}/gpu-0"

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_pod_goes_to_the_other_node_within_a_heartbeat_and_the_reason_says_why(
        self, here: Wards, fault: str
    ) -> None:
        (reason, _), moved = FAULTS[fault], f"moved-{list(FAULTS).index(fault)}"
        inject(here.agents[FIRST], fault)
        took = here.wait_refused(reason)
        assert here.place(moved, prefer=FIRST).startswith(SECOND)
        here.fleet.create([here.pod("waits", only=FIRST)])
        until(lambda: f"1 {reason}:" in here.message("waits"), said=lambda: here.message("waits"))
        decision = here.leader.decisions(here.deployed.reader_token(), here.fleet.namespace)[moved]
        assert decision["rejected"] == {reason: 1}
        until(lambda: here.node_events(reason))
        print(f"{fault}: refused {took:.2f} s after it was injected")
        assert took <= WITHIN_S

        heal(here.agents[FIRST])
        here.wait_open()
        well = time.monotonic()
        assert here.placed("waits").startswith(FIRST)
        print(f"{fault}: the pod that waited was placed {time.monotonic() - well:.2f} s after recovery")
        assert time.monotonic() - well <= 10
        assert NUDGE in here.fleet.pods()["waits"]["metadata"]["annotations"]

    def test_the_switch_opens_a_refused_node_and_closes_it_again(self, here: Wards) -> None:
        inject(here.agents[FIRST], "uncorrectable ECC")
        here.wait_refused("EccUncorrectable")
        here.fleet.create([here.pod("waits", only=FIRST)])
        until(lambda: "1 EccUncorrectable:" in here.message("waits"), said=lambda: here.message("waits"))
        with here.vetoes_off():
            assert here.placed("waits") == f"{FIRST}/gpu-0"
            here.clear()
            assert here.place("first", prefer=FIRST) == f"{FIRST}/gpu-0"
            here.clear()
        here.wait_refused("EccUncorrectable")
        assert here.place("later", prefer=FIRST).startswith(SECOND)

    def test_foreign_memory_counts_for_the_pods_that_it_leaves_too_little(self, here: Wards) -> None:
        here.agents[FIRST].gpus.put({"gpu0.mem_used": 75 << 30, "gpu0.procs": f"4194303:{75 << 30}"})
        here.wait_refused("MemoryHeldOutside", "40Gi")
        assert here.place("large", prefer=FIRST, need="40Gi").startswith(SECOND)
        assert here.place("small", prefer=FIRST, need="2Gi") == f"{FIRST}/gpu-0"

    def test_pods_on_a_gpu_that_is_lost_stay_and_no_new_one_comes(self, here: Wards) -> None:
        assert here.place("runs", prefer=FIRST) == f"{FIRST}/gpu-0"
        before = here.fleet.pods()["runs"]
        inject(here.agents[FIRST], "a lost GPU")
        until(lambda: here.leader.metrics()['berth_telemetry_unfit_devices{reason="DeviceLost"}'] == 1)
        assert here.place("beside", prefer=FIRST) == f"{FIRST}/gpu-1"
        assert here.place("elsewhere", prefer=FIRST).startswith(SECOND)
        after = here.fleet.pods()["runs"]
        assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
        assert "deletionTimestamp" not in after["metadata"]

        here.admin.delete("v1", "Pod", "runs", here.fleet.namespace)
        until(lambda: len(here.fleet.claims()) == 2)
        assert here.place("later", prefer=FIRST).startswith(SECOND)

    def test_without_telemetry_pods_are_placed_as_if_there_were_none(self, here: Wards) -> None:
        inject(here.agents[FIRST], "a lost GPU")
        here.wait_refused("DeviceLost")
        for agent in here.agents.values():
            agent.stop()
        try:
            here.wait_open()
            here.wait_metric('berth_telemetry_nodes{heard="silent"}', 2)
            assert here.place("placed", prefer=FIRST) == f"{FIRST}/gpu-0"
        finally:
            heal(here.agents[FIRST])
            for agent in here.agents.values():
                agent.start()
            here.wait_metric('berth_telemetry_nodes{heard="fresh"}', 2)

    def test_what_no_agent_may_send_is_refused_counted_and_changes_nothing(self, here: Wards) -> None:
        agent = here.agents[FIRST]
        sample = {
            "schema": 1,
            "node": FIRST,
            "bootId": "b",
            "agentId": "forged",
            "sequence": 1,
            "sentNs": 2,
            "readNs": 1,
            "wallNs": 1,
            "driver": {"state": "absent"},
            "devices": [],
        }
        text = msgspec.json.encode(sample)

        def with_reading(value: object) -> dict[str, object]:
            return {**sample, "devices": [{"uuid": "u", "readings": {"temperature": value}}]}

        before = here.leader.metrics()
        assert post(here.leader, "forged." + agent.token[10:], text) == 401
        assert post(here.leader, here.deployed.reader_token(), text) == 403
        assert post(here.leader, agent.token, msgspec.json.encode({**sample, "node": SECOND})) == 403
        assert post(here.leader, agent.token, b"x" * 100_000_000) == 413
        assert post(here.leader, agent.token, msgspec.json.encode(with_reading(-1))) == 400
        nan = msgspec.msgpack.encode(with_reading(float("nan")))
        assert post(here.leader, agent.token, nan, "application/msgpack") == 400
        after = here.leader.metrics()
        for why, count in {"token": 1, "account": 1, "node": 1, "size": 1, "malformed": 2}.items():
            name = f'berth_telemetry_samples_refused_total{{why="{why}"}}'
            assert after.get(name, 0) - before.get(name, 0) == count, why
        same = [name for name in before if "unfit" in name or name == "berth_telemetry_devices"]
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
        assert here.refusals() == {}

    def test_an_old_sample_sent_again_is_refused(self, here: Wards) -> None:
        agent = here.agents[SECOND]
        sample = {
            "schema": 1,
            "node": SECOND,
            "bootId": "b",
            "agentId": "another",
            "sequence": 7,
            "sentNs": 2,
            "readNs": 1,
            "wallNs": 1,
            "driver": {"state": "starting"},
        }
        agent.stop()
        try:
            assert post(here.leader, agent.token, msgspec.json.encode(sample)) == 204
            assert post(here.leader, agent.token, msgspec.json.encode(sample)) == 409
        finally:
            agent.start()
            here.wait_metric('berth_telemetry_nodes{heard="fresh"}', 2)


class TestQuarantine:
    """With quarantine, for at most half of the devices."""

    SETTINGS: ClassVar[Settings] = {"quarantine": {"enabled": True, "maxShare": 0.5, "intervalSeconds": 0.5}}

    def test_no_more_than_the_share_of_the_fleet_is_quarantined(self, here: Wards) -> None:
        first, second = here.agents[FIRST].gpus, here.agents[SECOND].gpus
        try:
            first.put({"gpu0.ecc_unc_vol": 1, "gpu1.ecc_unc_vol": 1})
            second.put({"gpu0.ecc_unc_vol": 1})
            here.wait_known(3)
            here.wait_metric('berth_quarantine_devices{state="held back"}', 1)
            assert len(here.rules()) == 2
        finally:
            first.put({"gpu1.ecc_unc_vol": 0})
            heal(here.agents[FIRST])
            heal(here.agents[SECOND])
        until(lambda: not here.rules())

    @pytest.mark.parametrize("fault", OF_ONE_DEVICE)
    def test_a_pod_gets_the_other_device_of_the_same_node(self, here: Wards, fault: str) -> None:
        inject(here.agents[FIRST], fault)
        until(here.rules, said=lambda: here.leader.log_text()[-2000:])
        assert here.place("beside", prefer=FIRST) == f"{FIRST}/gpu-1"
        (rule,) = here.rules().values()
        assert rule["spec"]["taint"]["value"] == FAULTS[fault][0]
        assert rule["spec"]["deviceSelector"]["device"] == "gpu-0"
        here.clear()
        heal(here.agents[FIRST])
        until(lambda: not here.rules())
        assert here.place("back", prefer=FIRST) == f"{FIRST}/gpu-0"

    def test_a_restart_keeps_the_rule_and_strangers_rules_are_never_touched(self, here: Wards) -> None:
        foreign = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "somebody-elses"},
            "spec": {
                "deviceSelector": {"driver": "gpu.nvidia.com", "pool": SECOND, "device": "gpu-1"},
                "taint": {"key": "example.com/mine", "value": "x", "effect": "NoSchedule"},
            },
        }
        kept = here.admin.create(foreign)
        inject(here.agents[FIRST], "a lost GPU")
        until(lambda: len(here.rules()) == 2)
        (ours,) = (r for name, r in here.rules().items() if name != "somebody-elses")
        here.leader.kill()
        here.leader.start()
        here.leader.wait_ready()
        here.wait_known(1)
        assert here.rules()[ours["metadata"]["name"]]["metadata"]["uid"] == ours["metadata"]["uid"]
        heal(here.agents[FIRST])
        until(lambda: list(here.rules()) == ["somebody-elses"])
        assert here.rules()["somebody-elses"]["metadata"]["uid"] == kept["metadata"]["uid"]
        here.admin.delete("resource.k8s.io/v1", "DeviceTaintRule", "somebody-elses")


class TestTakeover:
    """Two replicas."""

    SETTINGS: ClassVar[Settings] = {}

    def test_a_new_leader_nudges_the_pods_that_waited_under_the_old_one(self, here: Wards) -> None:
        second = here.replica("berth-1")
        here.restart_agents(here.leader, second)
        inject(here.agents[FIRST], "a lost GPU")
        here.wait_refused("DeviceLost")
        here.fleet.create([here.pod("waits", only=FIRST)])
        until(lambda: "1 DeviceLost:" in here.message("waits"))
        here.leader.kill()
        here.deployed.wait_led(here.forwarder, second.name)
        until(lambda: here.refusals(replica=second).get(FIRST, "").startswith("DeviceLost:"))
        until(lambda: second.metrics()["berth_waiting_pods"] == 1)
        assert not here.fleet.pods()["waits"]["spec"].get("nodeName")

        heal(here.agents[FIRST])
        here.wait_open(replica=second)
        well = time.monotonic()
        assert here.placed("waits", PATIENCE_S).startswith(FIRST)
        took = time.monotonic() - well
        print(f"the pod that waited was placed {took:.2f} s after recovery, by another leader")
        assert took <= 10
        assert NUDGE in here.fleet.pods()["waits"]["metadata"]["annotations"]
