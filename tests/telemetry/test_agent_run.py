"""The agent as a real process, nvidia-ml-py in its reader, on the fake library: each fault it can inject."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from extender.api.telemetry import Absence, Device, DeviceState, Sample
from tests.fake_nvml.fakenvml import RTX4090, State, gpu_uuid, mig_uuid
from tests.telemetry.conftest import NODE, PATIENCE_S, Replica, StartAgent, until

pytestmark = pytest.mark.slow
FIRST, SECOND = gpu_uuid(0), gpu_uuid(1)


def state_of(replica: Replica, uuid: str) -> DeviceState | None:
    device = replica.device(uuid)
    return device.state if device else None


def reading(replica: Replica, uuid: str, name: str) -> object:
    device = replica.device(uuid)
    return getattr(device.readings, name) if device else None


async def xid_is_heard(replica: Replica, gpus: State, index: int, code: int) -> None:
    """Raise the XID until it is heard: one from before the registration never is, by NVML's own rule."""
    device: Device | None = None
    for _ in range(int(PATIENCE_S / 0.3)):
        gpus.xid(index, code)
        for _ in range(30):
            device = replica.device(gpu_uuid(index))
            if device and code in {x.code for x in device.xids}:
                return
            await asyncio.sleep(0.01)
    raise AssertionError(f"XID {code} was never heard: {device}")


async def test_a_sample_names_every_device_by_uuid(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    gpus.put({"gpu0.procs": "4242:1073741824,4243:-"})
    start_agent()
    await until(lambda: replica.state() == "ok")
    sample = replica.samples[-1]
    assert sample.node == NODE
    assert sample.driver.version == "580.95.05"
    assert [d.uuid for d in sample.devices] == [FIRST, SECOND]
    device = sample.devices[0]
    assert (device.pci, device.minor, device.name) == ("0000:1a:00.0", 0, "NVIDIA H100 80GB HBM3")
    r = device.readings
    assert (r.memory_total, r.memory_used, r.memory_reserved) == (85520809984, 0, 570163200)
    assert (r.temperature, r.power, r.power_limit, r.clock_sm) == (34, 95000, 700000, 1980)
    assert (r.recovery_action, r.mig_mode, r.numa_node, r.throttle) == (0, 0, 0, 1)
    assert device.nvlinks == (1,) * 18
    assert not isinstance(device.fabric, Absence)
    assert (device.fabric.state, device.fabric.clique) == (3, 1)
    assert device.fabric.cluster == "7f000001-0000-4000-8000-0000000000aa"
    assert not isinstance(device.processes, Absence)
    assert [(p.pid, p.memory) for p in device.processes] == [(4242, 1 << 30), (4243, None)]
    assert 0 <= sample.sent_ns - sample.read_ns < PATIENCE_S * 1e9


async def test_sequence_numbers_grow_and_nothing_is_refused(
    replica: Replica, start_agent: StartAgent
) -> None:
    start_agent()
    await until(lambda: len(replica.samples) >= 4)
    numbers = [s.sequence for s in replica.samples]
    assert numbers == sorted(set(numbers))
    assert len({s.agent_id for s in replica.samples}) == 1


async def test_a_heartbeat_comes_without_change_and_a_change_ahead_of_it(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    start_agent(heartbeat_seconds=600.0)
    await until(lambda: replica.state() == "ok")
    gpus.put({"gpu0.temp": 77})
    await until(lambda: reading(replica, FIRST, "temperature") == 77)


async def test_an_xid_reaches_the_replica_with_its_instance(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    start_agent(heartbeat_seconds=600.0)
    await until(lambda: replica.state() == "ok")
    gpus.xid(1, 94, gi=7, ci=0)
    gpus.xid(1, 79)

    def codes() -> list[tuple[int, int | None]]:
        device = replica.device(SECOND)
        return [(x.code, x.gpu_instance) for x in device.xids] if device else []

    await until(lambda: codes() == [(94, 7), (79, None)])
    findings = replica.intake.health.reasons(NODE, [SECOND], _now(replica))
    assert [(f.reason, f.text) for f in findings] == [("DeviceUnhealthy", "XID 79 (restartNode)")]


def _now(replica: Replica) -> float:
    node = replica.intake.store.node(NODE)
    assert node is not None
    return node.heard_at


async def test_a_lost_gpu_leaves_the_other_alone_and_comes_back(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    start_agent()
    await until(lambda: state_of(replica, SECOND) is DeviceState.OK)
    gpus.put({"gpu1.err.*": 15})
    await until(lambda: state_of(replica, SECOND) is DeviceState.LOST)
    assert reading(replica, SECOND, "temperature") is Absence.LOST
    assert state_of(replica, FIRST) is DeviceState.OK
    assert reading(replica, FIRST, "temperature") == 34
    gpus.put({"gpu1.err.*": None})
    await until(lambda: state_of(replica, SECOND) is DeviceState.OK)
    await xid_is_heard(replica, gpus, 1, 31)


async def test_a_gpu_that_is_lost_before_the_reader_restarts_keeps_its_name(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    agent = start_agent()
    await until(lambda: state_of(replica, SECOND) is DeviceState.OK)
    gpus.put({"gpu1.err.*": 15})
    for reader in agent.readers():
        reader.kill()
    await until(lambda: replica.state() == "error")
    await until(lambda: replica.state() == "ok")
    assert state_of(replica, SECOND) is DeviceState.LOST


async def test_a_gpu_that_needs_a_reset_says_so(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    start_agent()
    gpus.put({"gpu0.err.*": 16})
    await until(lambda: replica.state() == "ok")
    # Never seen alive: it can't be named, so only the other is in the sample.
    assert [d.uuid for d in replica.samples[-1].devices] == [SECOND]
    gpus.put({"gpu0.err.*": None})
    await until(lambda: state_of(replica, FIRST) is DeviceState.OK)
    gpus.put({"gpu0.err.*": 16})
    await until(lambda: state_of(replica, FIRST) is DeviceState.RESET_REQUIRED)


async def test_memory_health_is_read(replica: Replica, start_agent: StartAgent, gpus: State) -> None:
    start_agent(heartbeat_seconds=600.0)
    await until(lambda: replica.state() == "ok")
    gpus.put({"gpu0.ecc_unc_vol": 3, "gpu0.remap_pending": 1, "gpu0.remap_failed": 1, "gpu0.field.230": 4})
    await until(lambda: reading(replica, FIRST, "ecc_uncorrected_volatile") == 3)
    await until(lambda: reading(replica, FIRST, "remap_pending") == 1)
    assert reading(replica, FIRST, "remap_failure") == 1
    assert reading(replica, FIRST, "recovery_action") == 4


async def test_a_consumer_card_has_unsupported_readings(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    State(gpus.path, RTX4090, 1)
    start_agent()
    await until(lambda: replica.state() == "ok")
    (device,) = replica.samples[-1].devices
    r = device.readings
    assert r.temperature == 40
    assert {r.ecc_uncorrected_volatile, r.remap_pending, r.mig_mode, r.recovery_action} == {
        Absence.UNSUPPORTED
    }
    assert device.nvlinks is Absence.UNSUPPORTED


async def test_one_failing_answer_is_an_error_of_that_reading_only(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    gpus.put({"gpu0.power_mw": "!999", "gpu0.util_gpu": 250})
    start_agent()
    await until(lambda: replica.state() == "ok")
    assert reading(replica, FIRST, "power") is Absence.ERROR
    assert reading(replica, FIRST, "utilisation_gpu") is Absence.ERROR  # out of range
    assert reading(replica, FIRST, "temperature") == 34


async def test_mig_devices_come_with_parent_and_placement(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    gpus.mig(1, 2)
    start_agent()
    await until(lambda: replica.state() == "ok")
    device = replica.device(mig_uuid(1, 1))
    assert device is not None
    assert device.mig is not None
    assert (device.mig.parent, device.mig.gpu_instance) == (SECOND, 8)
    assert (device.mig.profile, device.mig.start, device.mig.size) == (19, 1, 1)
    assert device.readings.memory_total == 9856 << 20
    assert device.readings.utilisation_gpu is Absence.UNSUPPORTED
    assert reading(replica, SECOND, "utilisation_gpu") is Absence.UNSUPPORTED


async def test_gpus_appear_and_vanish(replica: Replica, start_agent: StartAgent, gpus: State) -> None:
    start_agent(heartbeat_seconds=600.0)
    await until(lambda: replica.state() == "ok")
    gpus.gpus(4)
    await until(lambda: state_of(replica, gpu_uuid(3)) is DeviceState.OK)
    await xid_is_heard(replica, gpus, 3, 43)
    gpus.gpus(1)
    await until(lambda: [d.uuid for d in replica.samples[-1].devices] == [FIRST])


async def test_without_a_driver_the_agent_waits_for_one(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    gpus.unload()
    agent = start_agent()
    await until(lambda: replica.state() == "absent")
    assert replica.samples[-1].driver.code == 9
    gpus.write()
    await until(lambda: replica.state() == "ok")
    gpus.unload()
    await until(lambda: replica.state() == "absent")
    assert [d.uuid for d in replica.samples[-1].devices] == [FIRST, SECOND]  # what it last saw, ageing
    assert agent.running()


async def test_without_a_library_nothing_is_said_of_the_driver(
    replica: Replica, start_agent: StartAgent
) -> None:
    start_agent(variables={"LD_LIBRARY_PATH": ""})
    await until(lambda: replica.state() == "missing")
    assert replica.samples[-1].driver.code == 12
    assert replica.intake.health.reasons(NODE, [FIRST], _now(replica)) == []


async def test_a_driver_update_restarts_the_reader(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    agent = start_agent()
    await until(lambda: replica.state() == "ok")
    (before,) = [r.pid for r in agent.readers()]
    gpus.put({"err.nvmlDeviceGetCount_v2": 18, "err.nvmlInitWithFlags": 18})
    await until(lambda: replica.state() == "mismatch")
    gpus.put({"err.nvmlDeviceGetCount_v2": None, "err.nvmlInitWithFlags": None, "driver": "590.1"})
    await until(lambda: replica.state() == "ok" and replica.samples[-1].driver.version == "590.1")
    (after,) = [r.pid for r in agent.readers()]
    assert after != before


async def test_a_hung_call_is_reported_before_the_reader_is_killed(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    agent = start_agent(publish_grace_seconds=5.0)
    await until(lambda: replica.state() == "ok")
    (reader,) = agent.readers()
    alive_when_reported: list[bool] = []

    class Watched(list[Sample]):
        def append(self, sample: Sample) -> None:
            if sample.driver.state == "unresponsive" and not alive_when_reported:
                alive_when_reported.append(reader.is_running() and reader.status() != psutil.STATUS_ZOMBIE)
            super().append(sample)

    watched = Watched(replica.samples)
    object.__setattr__(replica.intake, "accepted", watched)
    gpus.put({"gpu0.delay_ms.nvmlDeviceGetUtilizationRates": -1})
    await until(lambda: replica.state() == "unresponsive")
    assert alive_when_reported == [True]
    last = replica.samples[-1]
    assert last.driver.operation == "nvmlDeviceGetUtilizationRates"
    assert [d.uuid for d in last.devices] == [FIRST, SECOND]
    await until(lambda: not reader.is_running() or reader.status() == psutil.STATUS_ZOMBIE)
    gpus.put({"gpu0.delay_ms.nvmlDeviceGetUtilizationRates": None})
    await until(lambda: replica.state() == "ok")


async def test_a_reader_in_uninterruptible_sleep_is_killed_and_replaced(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    agent = start_agent()
    await until(lambda: replica.state() == "ok")
    gpus.put({"gpu0.delay_ms.nvmlDeviceGetTemperature": -2})
    await until(lambda: replica.state() == "unresponsive")
    gpus.put({"gpu0.delay_ms.nvmlDeviceGetTemperature": None})
    await until(lambda: replica.state() == "ok")
    assert (await agent.get("/healthz")).status_code == 200
    assert await agent.metric('berth_agent_reader_ends_total{why="hung"}') >= 1


async def test_a_library_that_hangs_as_a_whole_keeps_one_reader_at_a_time(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    agent = start_agent(first_deadline_seconds=3.0)  # a loaded machine starts Python in less
    most = 0

    def one_at_a_time() -> bool:
        nonlocal most
        most = max(most, len(agent.readers()))
        return replica.state() == "unresponsive"

    gpus.put({"serialize": 1, "delay_ms.nvmlInitWithFlags": -1})
    await until(one_at_a_time)
    first = {reader.pid for reader in agent.readers()}
    await until(lambda: one_at_a_time() and not first >= {r.pid for r in agent.readers()})
    await until(lambda: one_at_a_time() and replica.samples[-1].driver.operation == "nvmlInit")
    assert most == 1
    gpus.put({"serialize": None, "delay_ms.nvmlInitWithFlags": None})
    await until(lambda: replica.state() == "ok")


async def test_slow_calls_within_the_deadline_are_only_slow(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    gpus.put({"gpu0.delay_ms.nvmlDeviceGetTemperature": 100})
    agent = start_agent(deadline_seconds=5.0)
    await until(lambda: len(replica.samples) >= 3)
    assert {str(s.driver.state) for s in replica.samples} <= {"ok", "starting"}
    assert await agent.metric('berth_agent_reader_ends_total{why="hung"}') == 0


async def test_a_failing_event_wait_makes_devices_suspect_and_heals(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    agent = start_agent()
    await until(lambda: replica.state() == "ok")
    gpus.put({"err.nvmlEventSetWait_v2": 15})

    async def event_error(code: float) -> None:
        for _ in range(int(PATIENCE_S / 0.02)):
            if await agent.metric("berth_agent_event_error") == code:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"event error never became {code}")

    await event_error(15)
    assert replica.state() == "ok"
    gpus.put({"err.nvmlEventSetWait_v2": None})
    await event_error(0)
    await xid_is_heard(replica, gpus, 0, 48)


async def test_processes_are_listed_rarely(replica: Replica, start_agent: StartAgent, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    start_agent(log=log, processes_seconds=600.0)
    await until(lambda: len(replica.samples) >= 3)
    await until(lambda: _calls(log, "nvmlDeviceGetTemperature") >= 10)
    # Two calls ask for the size and the list; with no process one is enough. Once for each GPU.
    assert _calls(log, "nvmlDeviceGetComputeRunningProcesses_v3") == 2
    assert _calls(log, "nvmlDeviceGetPcieThroughput") == 0
    assert _calls(log, "nvmlInitWithFlags") == 1


def _calls(log: Path, function: str) -> int:
    return sum(line.split()[1] == function for line in log.read_text().splitlines())


async def test_the_token_is_read_at_each_send(
    replica: Replica, start_agent: StartAgent, tmp_path: Path
) -> None:
    start_agent()
    await until(lambda: replica.state() == "ok")
    replica.tokens.known.clear()
    replica.tokens.admit("rotated", NODE)
    (tmp_path / "token").write_text("rotated")
    seen = len(replica.samples)
    await until(lambda: len(replica.samples) > seen)
    assert replica.tokens.asked[-1] == ("rotated", "berth")


async def test_the_agent_serves_its_last_sample_and_metrics(
    replica: Replica, start_agent: StartAgent, gpus: State
) -> None:
    agent = start_agent(heartbeat_seconds=600.0)
    await until(lambda: replica.state() == "ok")
    answer = await agent.get("/sample")
    assert [d["uuid"] for d in answer.json()["devices"]] == [FIRST, SECOND]
    assert float(answer.headers["x-berth-age-seconds"]) >= 0
    gpus.xid(0, 13)
    await until(lambda: bool((d := replica.device(FIRST)) and d.xids))
    assert await agent.metric('berth_agent_xids_total{xid="13"}') == 1
    assert await agent.metric('berth_agent_driver_state{state="ok"}') == 1


async def test_sigterm_ends_agent_and_reader_in_good_order(
    replica: Replica, start_agent: StartAgent, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    agent = start_agent(log=log)
    await until(lambda: replica.state() == "ok")
    (reader,) = agent.readers()
    status = await asyncio.to_thread(agent.terminate)
    assert status == 0, agent.log.read_text()
    assert not reader.is_running()
    assert _calls(log, "nvmlShutdown") == 1  # not killed
