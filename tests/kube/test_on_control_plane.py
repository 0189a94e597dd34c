"""The letterbox against the real API server, under the rights that deploy/ gives to Berth."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from extender.kube.binding import Binder
from extender.kube.client import ApiClient
from extender.kube.discovery import Discovery, DiscoveryTimes
from extender.kube.events import EventRecorder, Regarding
from extender.kube.kinds import DEVICE_TAINT_RULE, OPTIONAL
from extender.kube.leader_label import LEADER_LABEL, LeaderLabel
from extender.kube.lease import LeaseElector, unique_identity
from extender.kube.letterbox import Letterbox
from extender.kube.nudge import NUDGE_ANNOTATION, Nudger
from extender.kube.pace import Pace
from extender.kube.reflector import ReflectorOptions
from extender.kube.review import Reviewer
from extender.kube.taintrules import Outcome, TaintRuleWriter, rule_name
from extender.model.device import DeviceID
from extender.model.errors import KubeError
from extender.verbs.views import Identity
from tests.controlplane import objects
from tests.controlplane.cluster import ControlPlane
from tests.kube.conftest import NAMESPACE, connect
from tests.kube.recording import RecordingSink, until

pytestmark = pytest.mark.controlplane

STREAMED = ReflectorOptions()
PAGED = ReflectorOptions(streaming=False, page_limit=3)


@pytest.fixture(scope="module")
def namespaces(control_plane: ControlPlane) -> Iterator[str]:
    """Made before any test restarts the API server: the controllers take a minute to get over that."""
    names = [control_plane.create_namespace(f"test-{uuid.uuid4().hex[:10]}") for _ in range(15)]
    return iter(names)


@pytest.fixture
def namespace(namespaces: Iterator[str]) -> str:
    return next(namespaces)


@asynccontextmanager
async def running(
    client: ApiClient, sink: RecordingSink, options: ReflectorOptions
) -> AsyncIterator[Letterbox]:
    letterbox = Letterbox(client, sink, pace=Pace(), options=options, times=DiscoveryTimes(settle=0.1))
    task = asyncio.create_task(letterbox.run())
    try:
        yield letterbox
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("options", [STREAMED, PAGED], ids=["streamed", "paged"])
async def test_every_kind_syncs_and_follows(
    control_plane: ControlPlane, berth: ApiClient, namespace: str, options: ReflectorOptions
) -> None:
    admin = control_plane.client()
    names = [f"{namespace}-n{number}" for number in range(7)]
    for name in names:
        objects.register_gpu_node(admin, name)
    admin.create(objects.pod("before", namespace=namespace))
    sink = RecordingSink()
    async with running(berth, sink, options) as letterbox:
        await asyncio.wait_for(letterbox.wait_synced(), 30)
        assert set(names) <= set(sink.names("Node"))
        slices = [s for s in sink.known["ResourceSlice"].values() if s.spec.node_name in names]
        assert len(slices) == 7
        assert all(len(each.spec.devices) == 8 for each in slices)
        assert namespace in sink.names("Namespace")
        assert "before" in sink.names("Pod")
        assert "DeviceTaintRule" in letterbox.served
        admin.create(objects.pod("after", namespace=namespace))
        await sink.until(lambda: "after" in sink.names("Pod"))
        admin.delete("v1", "Pod", "before", namespace)
        await sink.until(lambda: "before" not in sink.names("Pod"))
        admin.patch("v1", "Pod", "after", {"status": {"phase": "Succeeded"}}, namespace, subresource="status")
        await sink.until(lambda: "after" not in sink.names("Pod"))
        assert letterbox.synced
        assert not any(each.undecodable for each in letterbox.stats.values())
    for name in names:
        admin.delete("v1", "Node", name)


@pytest.mark.parametrize("abruptly", [False, True], ids=["told", "killed"])
async def test_a_restart_of_the_api_server_is_survived_without_a_busy_loop(
    control_plane: ControlPlane, berth: ApiClient, namespace: str, *, abruptly: bool
) -> None:
    sink = RecordingSink()
    async with running(berth, sink, STREAMED) as letterbox:
        await asyncio.wait_for(letterbox.wait_synced(), 30)
        before = {kind: stats.connects for kind, stats in letterbox.stats.items()}
        await asyncio.to_thread(control_plane.stop_apiserver, abruptly=abruptly)
        await asyncio.sleep(5)  # an outage that lasts
        attempts = {kind: stats.connects - before[kind] for kind, stats in letterbox.stats.items()}
        await asyncio.to_thread(control_plane.start_apiserver)
        control_plane.client().create(objects.pod("late", namespace=namespace))
        await sink.until(lambda: "late" in sink.names("Pod"), 20)
        # 0.25 + 0.5 + 1 + 2 + ... s at the least: no more than six attempts fit.
        assert all(1 <= count <= 6 for count in attempts.values()), attempts


async def test_history_that_is_gone_is_listed_anew(
    control_plane: ControlPlane, berth: ApiClient, namespace: str
) -> None:
    admin = control_plane.client()
    admin.create(objects.pod("stays", namespace=namespace))
    sink = RecordingSink()
    async with running(berth, sink, STREAMED) as letterbox:
        await asyncio.wait_for(letterbox.wait_synced(), 30)
        await asyncio.to_thread(control_plane.expire_history)
        admin.create(objects.pod("new", namespace=namespace))
        await sink.until(lambda: "new" in sink.names("Pod"), 30)
        assert "stays" in sink.names("Pod")
        await until(lambda: sum(each.relists_gone for each in letterbox.stats.values()) > 0, 20)


async def test_a_resync_brings_what_was_true_when_it_was_asked_for(
    control_plane: ControlPlane, berth: ApiClient, namespace: str
) -> None:
    sink = RecordingSink()
    async with running(berth, sink, STREAMED) as letterbox:
        await asyncio.wait_for(letterbox.wait_synced(), 30)
        control_plane.client().create(objects.pod("just-now", namespace=namespace))
        await asyncio.wait_for(letterbox.resync(), 10)
        assert "just-now" in sink.names("Pod")


async def test_discovery_finds_the_preferred_versions(control_plane: ControlPlane, berth: ApiClient) -> None:
    served = await Discovery(berth, OPTIONAL, pace=Pace()).served()
    listed = control_plane.client().request("GET", "/apis/resource.k8s.io")
    versions = [each["version"] for each in listed["versions"]]
    expected = next(each for each in DEVICE_TAINT_RULE.versions if each in versions)
    assert served["DeviceTaintRule"] == expected


async def test_a_new_definition_makes_discovery_ask_again(
    control_plane: ControlPlane, berth: ApiClient
) -> None:
    asked = 0

    class Counting(Discovery):
        async def served(self) -> dict[str, str]:
            nonlocal asked
            asked += 1
            return await super().served()

    made = Counting(berth, OPTIONAL, pace=Pace(), times=DiscoveryTimes(interval=600, settle=0.1))
    task = asyncio.create_task(made.run(lambda _: None))
    try:
        await until(lambda: asked == 1)
        await asyncio.sleep(1)  # the watch of definitions gets going
        control_plane.client().create(_definition())
        await until(lambda: asked >= 2)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.tests.berth.scheduler"},
        "spec": {
            "group": "tests.berth.scheduler",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


class Candidate:
    def __init__(self, client: ApiClient, name: str) -> None:
        self.client = client
        self.log: list[str] = []
        self.elector = LeaseElector(
            client,
            namespace=NAMESPACE,
            name="berth",
            identity=unique_identity(name),
            pace=Pace(),
            on_started_leading=lambda term: self.log.append(f"start {term}"),
            on_stopped_leading=lambda: self.log.append("stop"),
        )
        self.task = asyncio.create_task(self.elector.run())


async def test_a_killed_leader_is_followed_within_15_seconds_and_a_stopped_one_at_once(
    control_plane: ControlPlane,
) -> None:
    token = control_plane.service_account_token(NAMESPACE, "berth")
    clients = [await connect(control_plane, token) for _ in range(2)]
    a = Candidate(clients[0], "berth-a")
    await until(lambda: len(a.log) == 1)
    term = a.elector.term
    b = Candidate(clients[1], "berth-b")
    await asyncio.sleep(5)  # several renewals
    assert b.log == []
    # Killed: its requests end in mid-air and nothing is released.
    await clients[0].close()
    a.elector._leading = False
    a.task.cancel()
    died = time.monotonic()
    await until(lambda: b.log == [f"start {term + 1}"], 15)
    took = time.monotonic() - died
    print(f"takeover after a kill: {took:.1f} s")
    assert took < 15
    client = await connect(control_plane, token)
    c = Candidate(client, "berth-c")
    await asyncio.sleep(1)
    b.task.cancel()
    stopped = time.monotonic()
    await until(lambda: c.log == [f"start {term + 2}"], 5)
    print(f"takeover after a stop: {time.monotonic() - stopped:.1f} s")
    assert b.log[-1] == "stop"
    c.task.cancel()
    await asyncio.gather(a.task, b.task, c.task, return_exceptions=True)
    await clients[1].close()
    await client.close()


async def test_the_label_moves_to_the_new_leader(control_plane: ControlPlane, berth: ApiClient) -> None:
    admin = control_plane.client()
    labels = {"app.kubernetes.io/name": "berth"}
    admin.create(objects.pod("berth-0", namespace=NAMESPACE, labels={**labels, LEADER_LABEL: "true"}))
    admin.create(objects.pod("berth-1", namespace=NAMESPACE, labels=labels))
    label = LeaderLabel(
        berth, namespace=NAMESPACE, selector="app.kubernetes.io/name=berth", own_pod="berth-1"
    )
    assert await label.take(lambda: True)
    found = {p["metadata"]["name"]: p["metadata"]["labels"] for p in admin.list_all("v1", "Pod", NAMESPACE)}
    assert found["berth-1"].get(LEADER_LABEL) == "true"
    assert LEADER_LABEL not in found["berth-0"]
    await label.drop(lambda: True)
    assert LEADER_LABEL not in admin.get("v1", "Pod", "berth-1", NAMESPACE)["metadata"]["labels"]


async def test_a_bind_is_idempotent_by_uid_and_node(
    control_plane: ControlPlane, berth: ApiClient, namespace: str
) -> None:
    admin = control_plane.client()
    pod = admin.create(objects.pod("p", namespace=namespace, scheduler="nobody"))
    uid = pod["metadata"]["uid"]
    binder = Binder(berth)
    assert "UID" in await binder.bind(namespace, "p", str(uuid.uuid4()), "node-1")
    assert await binder.bind(namespace, "p", uid, "node-1") == ""
    assert await binder.bind(namespace, "p", uid, "node-1") == ""
    assert "node-1" in await binder.bind(namespace, "p", uid, "node-2")
    assert admin.get("v1", "Pod", "p", namespace)["spec"]["nodeName"] == "node-1"
    admin.delete("v1", "Pod", "p", namespace)
    again = admin.create(objects.pod("p", namespace=namespace, scheduler="nobody"))
    assert "UID" in await binder.bind(namespace, "p", uid, "node-1")
    assert "nodeName" not in admin.get("v1", "Pod", "p", namespace)["spec"]
    assert again["metadata"]["uid"] != uid
    assert "not found" in await binder.bind(namespace, "absent", uid, "node-1")


async def test_tokens_and_rights_are_judged_by_the_api_server(
    control_plane: ControlPlane, berth: ApiClient, namespace: str
) -> None:
    admin = control_plane.client()
    token = control_plane.service_account_token(namespace, "default", audiences=["berth"])
    reviewer = Reviewer(berth, clock=time.monotonic)
    identity = await reviewer.authenticate(token, "berth")
    assert identity is not None
    assert identity.username == f"system:serviceaccount:{namespace}:default"
    assert await reviewer.authenticate(token, "other") is None
    assert await reviewer.authenticate("nonsense", "berth") is None
    plain = control_plane.service_account_token(namespace, "default")
    assert await reviewer.authenticate(plain, "berth") is None
    assert not await reviewer.allowed(identity, "get", "/api/v1/fleet")
    admin.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"readers-{namespace}"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "berth-reader",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        }
    )
    async with asyncio.timeout(10):
        # The authorizer learns of the binding by its own watch.
        while not await _allowed_now(berth, identity, "/api/v1/fleet"):  # noqa: ASYNC110 - no event tells us
            await asyncio.sleep(0.1)
    assert not await _allowed_now(berth, identity, "/metrics")


async def _allowed_now(client: ApiClient, identity: Identity, path: str) -> bool:
    return await Reviewer(client, clock=time.monotonic).allowed(identity, "get", path)


async def test_the_token_of_a_pod_on_a_node_names_the_node(
    control_plane: ControlPlane, berth: ApiClient, namespace: str
) -> None:
    admin = control_plane.client()
    node = f"{namespace}-node"
    objects.register_node(admin, objects.cpu_node(node))
    pod = admin.create(objects.pod("agent", namespace=namespace, scheduler="nobody"))
    assert await Binder(berth).bind(namespace, "agent", pod["metadata"]["uid"], node) == ""
    token = control_plane.service_account_token(
        namespace, "default", audiences=["berth"], pod=admin.get("v1", "Pod", "agent", namespace)
    )
    identity = await Reviewer(berth, clock=time.monotonic).authenticate(token, "berth")
    assert identity is not None
    assert identity.extra["authentication.kubernetes.io/node-name"] == (node,)
    admin.delete("v1", "Node", node)


async def test_an_event_is_written_and_its_series_grows(
    control_plane: ControlPlane, berth: ApiClient, namespace: str
) -> None:
    admin = control_plane.client()
    pod = admin.create(objects.pod("p", namespace=namespace))
    recorder = EventRecorder(berth, instance="berth-0", pace=Pace())
    about = Regarding("Pod", "p", namespace, pod["metadata"]["uid"])
    for _ in range(3):
        recorder.record(about, type="Warning", reason="PlanPending", note="wait", action="Filter")
        await recorder.flush()
    assert (recorder.stats.written, recorder.stats.failed) == (3, 0)
    found = admin.list_all("events.k8s.io/v1", "Event", namespace)
    ours = [each for each in found if each["reason"] == "PlanPending"]
    assert len(ours) == 1
    assert ours[0]["series"]["count"] == 3
    assert ours[0]["regarding"]["uid"] == pod["metadata"]["uid"]


async def test_a_nudge_touches_only_the_pod_that_was_meant(
    control_plane: ControlPlane, root: ApiClient, namespace: str
) -> None:
    admin = control_plane.client()
    pod = admin.create(objects.pod("p", namespace=namespace))
    nudger = Nudger(root, lambda: True, pace=Pace())
    nudger.add(namespace, "p", str(uuid.uuid4()))
    assert await nudger.flush() == 0
    assert nudger.stats.vanished == 1
    nudger.add(namespace, "p", pod["metadata"]["uid"])
    assert await nudger.flush() == 1
    assert NUDGE_ANNOTATION in admin.get("v1", "Pod", "p", namespace)["metadata"]["annotations"]


async def test_a_quarantine_comes_and_goes(root: ApiClient) -> None:
    served = await Discovery(root, OPTIONAL, pace=Pace()).served()
    version = served["DeviceTaintRule"]
    writer = TaintRuleWriter(root, version, lambda: True)
    device = DeviceID("gpu.nvidia.com", "node-1", "gpu-0")
    made = await writer.taint(device, key="berth.scheduler/sick", value="xid", effect="NoSchedule")
    assert made is Outcome.DONE
    again = await writer.taint(device, key="berth.scheduler/sick", value="xid", effect="NoSchedule")
    assert again is Outcome.ALREADY
    name = rule_name(device, "berth.scheduler/sick")
    assert [rule.metadata.name for rule in await writer.ours()] == [name]
    assert await writer.clear(name) is Outcome.DONE
    assert await writer.ours() == []


async def test_what_deploy_does_not_allow_is_refused(
    control_plane: ControlPlane, berth: ApiClient, namespace: str
) -> None:
    control_plane.client().create(objects.pod("p", namespace=namespace))
    with pytest.raises(KubeError, match="forbidden") as caught:
        await berth.delete(f"/api/v1/namespaces/{namespace}/pods/p")
    assert caught.value.status == 403
