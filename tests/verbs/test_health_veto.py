"""Health vetoes: about the device that first fit would take, about whole nodes, and about plugin pods."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api.resource import DeviceRequest, ExactDeviceRequest
from extender.api.telemetry import Device, DeviceState, DriverState, Xid
from extender.model.reason import Reason
from extender.verbs.filter import FilterAnswer, filter_nodes
from extender.verbs.health_veto import BLOCKS_NODE
from extender.verbs.preempt import nodes_to_drop
from extender.verbs.prioritize import prioritize
from tests.inventory.objects import GPU, claim, node, pod, result
from tests.verbs.live import Live, asking, gpu


@pytest.fixture
def live() -> Live:
    made = Live()
    made.tell_all()
    return made


def ask(live: Live, *claims: str) -> FilterAnswer:
    return filter_nodes(live.desk, live.question(asking(*claims)), enforce=True)


def lost(node_name: str, number: int) -> Device:
    return msgspec.structs.replace(gpu(node_name, number), state=DeviceState.LOST)


def with_xid(node_name: str, number: int, code: int) -> Device:
    return msgspec.structs.replace(gpu(node_name, number), xids=(Xid(1, code, 10**15),))


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (lost("n0", 0), Reason.DEVICE_LOST),
        (with_xid("n0", 0, 79), Reason.DEVICE_UNHEALTHY),
        (gpu("n0", 0, recovery_action=1), Reason.DEVICE_UNHEALTHY),
        (gpu("n0", 0, ecc_uncorrected_volatile=1), Reason.ECC_UNCORRECTABLE),
        (gpu("n0", 0, remap_pending=1), Reason.ROW_REMAP_PENDING),
    ],
)
def test_a_node_whose_predicted_device_is_unfit_is_refused(
    live: Live, device: Device, reason: Reason
) -> None:
    live.tell("n0", device, gpu("n0", 1))
    answer = ask(live)
    assert list(answer.passed) == ["n1"]
    assert list(answer.unresolvable) == ["n0"]
    assert answer.unresolvable["n0"].startswith(f"{reason}: ")
    assert answer.counts == {reason: 1}
    assert nodes_to_drop(live.desk, live.question(asking()), enforce=True) == {"n0"}


def test_an_application_fault_refuses_nobody(live: Live) -> None:
    live.tell("n0", with_xid("n0", 0, 13), gpu("n0", 1))
    assert list(ask(live).passed) == ["n0", "n1"]


def test_a_sick_first_device_blocks_its_neighbours_and_that_is_said(live: Live) -> None:
    live.tell("n0", lost("n0", 0), gpu("n0", 1))
    answer = ask(live)
    assert answer.detail(0) == (
        "gpu-0: DeviceLost: off the bus, for 0 s; DeviceUnhealthyBlocksNode: fit and free beside it: gpu-1"
    )
    both = ask(live, "c", "d")
    assert list(both.passed) == ["n1"]
    assert BLOCKS_NODE not in both.detail(0)  # the pod needs both: no neighbour is blocked


def test_a_sick_device_that_the_pod_would_not_get_refuses_nobody(live: Live) -> None:
    live.tell("n0", gpu("n0", 0), lost("n0", 1))
    assert list(ask(live).passed) == ["n0", "n1"]
    live.ledger.upserted("ResourceClaim", claim("held", [result("n0", "gpu-0")]))
    assert list(ask(live).passed) == ["n1"]


def test_a_node_with_every_device_unfit_says_so_once(live: Live) -> None:
    live.tell("n0", lost("n0", 0), lost("n0", 1))
    answer = ask(live, "c", "d")
    assert answer.unresolvable == {"n0": "DeviceLost: no device of the node is fit for new pods"}
    assert answer.detail(0) == "all devices: DeviceLost: off the bus, for 0 s"


def test_a_driver_that_is_gone_makes_the_node_stale(live: Live) -> None:
    live.tell("n0", driver=DriverState.ABSENT)
    answer = ask(live)
    assert list(answer.passed) == ["n1"]
    assert answer.unresolvable["n0"].startswith("DriverStale: no driver answers")


def test_a_driver_that_hangs_makes_every_device_unhealthy(live: Live) -> None:
    live.tell("n0", driver=DriverState.UNRESPONSIVE)
    assert ask(live).unresolvable["n0"].startswith("DeviceUnhealthy: no device of the node")


def test_a_device_comes_back_after_its_quiet_time(live: Live) -> None:
    live.tell("n0", lost("n0", 0), gpu("n0", 1))
    assert list(ask(live).passed) == ["n1"]
    live.now += 10
    live.tell_all()
    assert list(ask(live).passed) == ["n1"]
    live.now += 301
    live.tell_all()
    assert list(ask(live).passed) == ["n0", "n1"]


def test_a_node_that_falls_silent_is_unknown_and_refuses_nobody(live: Live) -> None:
    live.tell("n0", lost("n0", 0), gpu("n0", 1))
    assert list(ask(live).passed) == ["n1"]
    live.now += 301
    assert list(ask(live).passed) == ["n0", "n1"]


def test_who_looks_after_devices_may_have_a_sick_one(live: Live) -> None:
    live.tell("n0", lost("n0", 0), gpu("n0", 1))
    admin = [DeviceRequest("gpu", ExactDeviceRequest("gpu", count=1, admin_access=True))]
    live.ledger.upserted("ResourceClaim", claim("c", requests=admin))
    assert list(ask(live).passed) == ["n0", "n1"]


def test_an_allocated_claim_on_a_lost_device_refuses_its_node(live: Live) -> None:
    live.ledger.upserted("ResourceClaim", claim("c", [result("n0", "gpu-1")]))
    live.tell("n0", gpu("n0", 0), lost("n0", 1))
    assert list(ask(live).unresolvable) == ["n0", "n1"]  # kube-scheduler would offer n0 only


class TestPlugin:
    """Device plugins: the kubelet picks, so only a count is known."""

    @pytest.fixture
    def live(self) -> Live:
        made = Live()
        made.ledger.replaced("ResourceSlice", [], [])
        made.ledger.replaced("Node", [node("n0", {GPU: "2"}), node("n1", {GPU: "2"})], [])
        made.tell_all()
        return made

    def ask(self, live: Live, amount: int) -> FilterAnswer:
        asking_plugin = pod("q", requests={GPU: str(amount)})
        return filter_nodes(live.desk, live.question(asking_plugin), enforce=True)

    def test_one_sick_device_refuses_only_who_needs_more_than_are_fit(self, live: Live) -> None:
        live.tell("n0", lost("n0", 0), gpu("n0", 1))
        assert list(self.ask(live, 1).passed) == ["n0", "n1"]
        answer = self.ask(live, 2)
        assert list(answer.passed) == ["n1"]
        assert answer.detail(0) == "1 of 2 GPUs are unfit"

    def test_shares_of_time_are_not_counted_as_devices(self, live: Live) -> None:
        live.ledger.upserted("Node", node("n0", {GPU: "8"}))
        live.tell("n0", lost("n0", 0), gpu("n0", 1))
        assert list(self.ask(live, 2).passed) == ["n0", "n1"]

    def test_a_node_with_every_device_unfit_is_refused(self, live: Live) -> None:
        live.tell("n0", lost("n0", 0), lost("n0", 1))
        assert list(self.ask(live, 1).passed) == ["n1"]

    def test_a_stale_driver_refuses(self, live: Live) -> None:
        live.tell("n0", driver=DriverState.MISMATCH)
        assert self.ask(live, 1).unresolvable["n0"].startswith("DriverStale")

    def test_pods_that_want_other_resources_are_let_through(self, live: Live) -> None:
        live.ledger.upserted("Node", node("n0", {GPU: "2", "rdma/hca": "1"}))
        live.tell("n0", driver=DriverState.ABSENT)
        asked = live.question(pod("q", requests={"rdma/hca": "1"}))
        assert list(filter_nodes(live.desk, asked, enforce=True).passed) == ["n0", "n1"]


@given(
    held=st.sets(st.sampled_from([("n0", 0), ("n0", 1), ("n1", 0), ("n1", 1), ("n2", 0)]), max_size=4),
    claims=st.sampled_from([("c",), ("c", "d")]),
    silent=st.booleans(),
)
def test_without_telemetry_every_answer_is_that_of_a_desk_without_it(
    held: set[tuple[str, int]], claims: tuple[str, ...], *, silent: bool
) -> None:
    """No telemetry at all, or all of it too old: exactly the other desk's names, totals and scores."""
    names = ("n0", "n1", "n2")
    live, bare = Live(names), Live(names)
    bare.desk.vetoes = ()
    bare.desk.policy = bare.desk.policy.model_copy(update={"judges": {"pack": 3.0, "pool": 5.0}})
    if silent:
        live.tell_all(utilisation_gpu=90, remap_pending=1)
        live.now += 301
        bare.now = live.now
    for number, (on, device) in enumerate(sorted(held)):
        for each in (live, bare):
            each.ledger.upserted("ResourceClaim", claim(f"h{number}", [result(on, f"gpu-{device}")]))
    asked, plain = live.question(asking(*claims)), bare.question(asking(*claims))
    assert (
        filter_nodes(live.desk, asked, enforce=True).passed
        == filter_nodes(bare.desk, plain, enforce=True).passed
    )
    ruled, expected = prioritize(live.desk, asked), prioritize(bare.desk, plain)
    assert ruled.total.tolist() == expected.total.tolist()
    assert ruled.scores.tolist() == expected.scores.tolist()
