"""Sources: the scheduler's dynamicresources/extendeddynamicresources.go and KEP-5004."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.allocator import Allocation
from extender.allocator.extended import CannotFit, ExtendedClaim, extended_claim
from extender.api.core import Container, Node, NodeStatus, Pod, PodSpec, ResourceRequirements
from extender.api.meta import ObjectMeta
from extender.api.resource import DeviceClass, DeviceClassSpec
from extender.inventory.classes import Classes, ClassTable
from tests.allocator.builders import CLASSES, NODE, attempt, device, names, slice_of

_GPU = "example.com/gpu"


def _classes(*classes: DeviceClass) -> Classes:
    table = ClassTable()
    for item in (*CLASSES.values(), *classes):
        table.upsert(item)
    return table.view()


_BACKED = _classes(DeviceClass(ObjectMeta(name="gpus"), DeviceClassSpec(extended_resource_name=_GPU)))


def _container(name: str, requests: Mapping[str, Any], restart: str | None = None) -> Container:
    return Container(name, resources=ResourceRequirements(requests=dict(requests)), restart_policy=restart)


def _pod(*containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    meta = ObjectMeta(name="pod", namespace="team", uid="pod-uid")
    return Pod(meta, PodSpec(containers=list(containers), init_containers=list(init) or None))


def _made(pod: Pod, classes: Classes = _BACKED, node: Node = NODE) -> ExtendedClaim:
    made = extended_claim(pod, node, classes)
    assert isinstance(made, ExtendedClaim), made
    return made


def _requests(made: ExtendedClaim) -> list[tuple[str, str, int]]:
    return [
        (item.name, item.exactly.device_class_name, item.exactly.count)
        for item in made.claim.spec.devices.requests or ()
        if item.exactly is not None
    ]


def _mappings(made: ExtendedClaim) -> list[tuple[str, str, str]]:
    return [(item.container_name, item.resource_name, item.request_name) for item in made.mappings]


def test_a_request_is_named_by_container_and_place_among_its_resources() -> None:
    pod = _pod(
        _container("sidekick", {"cpu": "1"}), _container("main", {"memory": "1Gi", "cpu": "1", _GPU: "2"})
    )
    made = _made(pod)
    assert _requests(made) == [("container-1-request-1", "gpus", 2)]
    assert _mappings(made) == [("main", _GPU, "container-1-request-1")]


def test_the_claim_is_the_pods_and_has_no_name_of_an_object() -> None:
    made = _made(_pod(_container("main", {_GPU: "1"})))
    meta = made.claim.metadata
    assert (meta.name, meta.namespace) == ("<extended-resources>", "team")
    assert meta.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [(owner.kind, owner.uid, owner.controller) for owner in meta.owner_references or ()] == [
        ("Pod", "pod-uid", True)
    ]


def test_a_class_stands_for_its_implicit_name_without_saying_so() -> None:
    made = _made(_pod(_container("main", {"deviceclass.resource.kubernetes.io/gpu": "1"})))
    assert _requests(made) == [("container-0-request-0", "gpu", 1)]


def test_the_newest_class_of_a_resource_wins_and_the_first_name_breaks_ties() -> None:
    def named(name: str, created: str) -> DeviceClass:
        meta = ObjectMeta(name=name, creation_timestamp=created)
        return DeviceClass(meta, DeviceClassSpec(extended_resource_name=_GPU))

    old, new = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    classes = _classes(named("a", old), named("c", new), named("b", new))
    assert _requests(_made(_pod(_container("main", {_GPU: "1"})), classes))[0][1] == "b"


def test_what_a_device_plugin_offers_is_left_to_it() -> None:
    node = Node(metadata=NODE.metadata, status=NodeStatus(allocatable={_GPU: "4"}))
    assert extended_claim(_pod(_container("main", {_GPU: "1"})), node, _BACKED) is None
    drained = Node(metadata=NODE.metadata, status=NodeStatus(allocatable={_GPU: "0"}))
    assert _requests(_made(_pod(_container("main", {_GPU: "1"})), node=drained))


def test_a_resource_that_nobody_offers_does_not_fit() -> None:
    pod = _pod(_container("main", {_GPU: "1", "example.com/fpga": "1"}))
    assert extended_claim(pod, NODE, _BACKED) == CannotFit("example.com/fpga")
    plain = _pod(_container("main", {"example.com/fpga": "1", "cpu": "1"}))
    assert extended_claim(plain, NODE, _BACKED) is None  # not a matter of DRA at all


def test_init_containers_use_what_later_containers_hold_and_share_what_they_need_beyond() -> None:
    pod = _pod(
        _container("main", {_GPU: "1"}),
        init=(_container("first", {_GPU: "3"}), _container("second", {_GPU: "2"})),
    )
    made = _made(pod)
    assert _requests(made) == [("container-0-request-0", "gpus", 2), ("container-2-request-0", "gpus", 1)]
    assert _mappings(made) == [
        ("main", _GPU, "container-2-request-0"),
        ("first", _GPU, "container-2-request-0"),
        ("first", _GPU, "container-0-request-0"),
        ("second", _GPU, "container-2-request-0"),
        ("second", _GPU, "container-0-request-0"),
    ]


def test_a_sidecar_keeps_its_own_devices() -> None:
    sidecar = _container("sidecar", {_GPU: "1"}, restart="Always")
    pod = _pod(_container("main", {_GPU: "1"}), init=(sidecar, _container("init", {_GPU: "1"})))
    made = _made(pod)
    assert [name for name, _, _ in _requests(made)] == ["container-0-request-0", "container-2-request-0"]
    assert ("init", _GPU, "container-2-request-0") in _mappings(made)


def test_requests_of_several_resources_are_ordered_by_name() -> None:
    other = DeviceClass(ObjectMeta(name="nics"), DeviceClassSpec(extended_resource_name="example.com/nic"))
    classes = _classes(
        other, DeviceClass(ObjectMeta(name="gpus"), DeviceClassSpec(extended_resource_name=_GPU))
    )
    both = {_GPU: "1", "example.com/nic": "1"}
    made = _made(_pod(_container("a", both), _container("b", both)), classes)
    assert [name for name, _, _ in _requests(made)] == [
        "container-0-request-0",
        "container-0-request-1",
        "container-1-request-0",
        "container-1-request-1",
    ]


def test_the_claim_can_be_allocated() -> None:
    made = _made(_pod(_container("main", {_GPU: "2"})))
    classes = {**CLASSES, "gpus": DeviceClass(ObjectMeta(name="gpus"))}
    outcome = attempt([made.claim], [slice_of([device("a"), device("b")])], classes=classes)
    assert isinstance(outcome, Allocation)
    assert names(outcome) == [["a", "b"]]


def test_of_init_containers_that_need_as_much_the_first_names_the_request() -> None:
    pod = _pod(
        _container("main", {"cpu": "1"}),
        init=(_container("first", {_GPU: "2"}), _container("second", {_GPU: "2"})),
    )
    made = _made(pod)
    assert _requests(made) == [("container-0-request-0", "gpus", 2)]
    assert _mappings(made) == [
        ("first", _GPU, "container-0-request-0"),
        ("second", _GPU, "container-0-request-0"),
    ]
