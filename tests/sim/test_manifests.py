"""Kubernetes YAML as people have it: lists, server fields, older shapes, documents of another kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.errors import SettingsError
from extender.sim.manifests import Manifests, load, missing_nodes

DATA = Path(__file__).parent / "data"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}"


def read(folder: Path, text: str, name: str = "all.yaml") -> Manifests:
    (folder / name).write_text(text)
    return load(folder)


def named(found: Manifests, kind: str) -> dict[str, Any]:
    return {obj.metadata.name: obj for obj in found.objects.get(kind, ())}


def test_everything_that_drivers_publish_is_read_and_the_rest_named() -> None:
    found = load(DATA / "drivers")
    assert {kind: len(objects) for kind, objects in found.objects.items()} == {
        "Namespace": 1,
        "ResourceClaim": 2,
        "ResourceSlice": 2,
        "ResourceClaimTemplate": 2,
        "DeviceClass": 2,
        "Pod": 1,
    }
    assert [(Path(left.where).name, left.why) for left in found.skipped] == [
        ("amd.yml, document 3", "apps/v1 Deployment is not used here"),
        ("intel.yaml, document 1", "no Kubernetes object: kind or apiVersion is missing"),
    ]


def test_items_of_a_list_keep_their_server_fields() -> None:
    published = named(load(DATA / "drivers"), "ResourceSlice")["worker-1-gpu.nvidia.com-abcde"]
    assert published.metadata.resource_version == "4711"
    assert published.metadata.creation_timestamp == "2026-03-01T09:00:00Z"
    assert published.metadata.owner_references[0].kind == "Node"
    assert [device.name for device in published.spec.devices] == ["gpu-0", "gpu-1", "gpu-2-mig-19-0"]


def test_items_of_a_typed_list_need_no_kind_of_their_own() -> None:
    published = named(load(DATA / "drivers"), "ResourceSlice")["worker-2-dra.net-x1"]
    assert published.spec.devices[1].attributes["dra.net/rdma"].bool is True


def test_an_allocation_is_read_and_null_fields_count_as_left_out() -> None:
    nic = named(load(DATA / "drivers"), "ResourceClaim")["nic"]
    [result] = nic.status.allocation.devices.results
    assert (result.pool, result.device, result.admin_access) == ("worker-2", "pci-0000-03-00-0", None)
    assert nic.status.allocation.allocation_timestamp == "2026-03-01T09:05:00Z"


def test_alternatives_stay_alternatives() -> None:
    template = named(load(DATA / "drivers"), "ResourceClaimTemplate")["either"]
    [request] = template.spec.spec.devices.requests
    assert request.exactly is None
    assert [one.name for one in request.first_available] == ["big", "small"]


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_flat_request_of_v1beta1_becomes_an_exact_one(kind: str) -> None:
    found = named(load(DATA / "older" / "v1beta1.yaml"), kind)["flat"]
    spec = found.spec if kind == "ResourceClaim" else found.spec.spec
    first = spec.devices.requests[0]
    assert first.name == "gpu"
    assert first.exactly.device_class_name == "gpu.example.com"
    if kind == "ResourceClaim":
        assert (first.exactly.count, len(first.exactly.selectors)) == (2, 1)
        assert spec.devices.requests[1].first_available[0].name == "one"
    else:
        assert first.exactly.admin_access is True


def test_a_basic_device_of_v1beta1_becomes_a_plain_one() -> None:
    [published] = load(DATA / "older" / "v1beta1.yaml").objects["ResourceSlice"]
    [device] = published.spec.devices
    assert (device.name, device.attributes["model"].string) == ("gpu-0", "Old")
    assert device.capacity["memory"].value == "40Gi"


def test_a_bare_quantity_of_v1alpha3_becomes_a_capacitys_value() -> None:
    found = load(DATA / "older" / "v1alpha3.yaml")
    [device] = found.objects["ResourceSlice"][0].spec.devices
    assert (device.capacity["memory"].value, device.capacity["slots"].value) == ("40Gi", 4)
    assert found.objects["ResourceClaim"][0].spec.devices.requests[0].exactly.allocation_mode == "All"
    assert found.objects["DeviceTaintRule"][0].spec.device_selector.device == "gpu-0"


def test_v1beta2_has_the_shapes_of_v1() -> None:
    claim = named(load(DATA / "older" / "v1beta2.yaml"), "ResourceClaim")["beta"]
    assert claim.spec.devices.requests[0].exactly.count == 3


def test_classic_dra_is_another_api(tmp_path: Path) -> None:
    found = read(tmp_path, "{apiVersion: resource.k8s.io/v1alpha2, kind: ResourceClaim, metadata: {name: c}}")
    assert [left.why for left in found.skipped] == ["resource.k8s.io/v1alpha2 ResourceClaim is not used here"]


def test_a_kind_of_the_same_name_in_another_group_is_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, "{apiVersion: example.com/v1, kind: Node, metadata: {name: n}}")
    assert found.objects == {}
    assert found.skipped[0].why == "example.com/v1 Node is not used here"


def test_what_an_api_server_fills_in_is_filled_in(tmp_path: Path) -> None:
    [pod] = read(tmp_path, POD).objects["Pod"]
    assert (pod.metadata.namespace, pod.spec.scheduler_name) == ("default", "default-scheduler")


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, ("ExactCount", 1)),
        ({"count": 3}, ("ExactCount", 3)),
        ({"allocationMode": "ExactCount"}, ("ExactCount", 1)),
        ({"allocationMode": "All"}, ("All", 0)),
    ],
)
def test_mode_and_count_of_a_request_are_those_that_an_api_server_stores(
    tmp_path: Path, kind: str, given: dict[str, object], stored: tuple[str, int]
) -> None:
    request = {"deviceClassName": "gpu.example.com", "tolerations": [{"key": "sick"}], **given}
    requests = [
        {"name": "a", "exactly": request},
        {"name": "b", "firstAvailable": [{"name": "c", **request}]},
    ]
    spec: dict[str, Any] = {"devices": {"requests": requests}}
    document = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec if kind == "ResourceClaim" else {"spec": spec},
    }
    [found] = read(tmp_path, json.dumps(document)).objects[kind]
    read_spec = found.spec if kind == "ResourceClaim" else found.spec.spec
    first, second = read_spec.devices.requests
    for one in (first.exactly, *second.first_available):
        assert (one.allocation_mode, one.count) == stored
        assert [toleration.operator for toleration in one.tolerations] == ["Equal"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("just: notes", "no Kubernetes object"),
        ("[1, 2]", "no Kubernetes object"),
        ("text", "no Kubernetes object"),
        ("{apiVersion: v1, kind: [Pod]}", "no Kubernetes object"),
        ("{apiVersion: v1, kind: Pod, metadata: {}}", "Pod: metadata.name is missing"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: 3}}", "$.spec.containers"),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: lots}}}",
            "Node: quantities must match",
        ),
        ("{apiVersion: v1, kind: List, items: [7]}", "no Kubernetes object"),
        ("&a [*a]", "no Kubernetes object"),
        ("{apiVersion: v1, kind: Pod, metadata: &m {name: p, labels: *m}}", "Pod: "),
    ],
)
def test_a_document_that_is_no_object_is_named_and_its_neighbours_are_used(
    tmp_path: Path, text: str, why: str
) -> None:
    found = read(tmp_path, f"{text}\n---\n{POD}\n")
    [left] = found.skipped
    assert left.where.startswith(f"{tmp_path / 'all.yaml'}, document 1")
    assert why in left.why
    assert list(named(found, "Pod")) == ["p"]


@pytest.mark.parametrize("text", ["a: [1", "a: !!python/object:os.system {}", "\t- x", "a: b: c"])
def test_a_broken_file_is_named_and_the_others_are_used(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    found = read(tmp_path, POD)
    [left] = found.skipped
    assert left.where == str(tmp_path / "broken.yaml")
    assert left.why.startswith("not YAML: ")
    assert "\n" not in left.why
    assert list(named(found, "Pod")) == ["p"]


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert "not YAML" in load(tmp_path).skipped[0].why


def test_what_looks_like_a_date_stays_the_text_it_is(tmp_path: Path) -> None:
    text = "{apiVersion: v1, kind: Node, metadata: {name: n, labels: {day: 2026-99-99, good: 2026-01-02}}}"
    [node] = read(tmp_path, text).objects["Node"]
    assert node.metadata.labels == {"day": "2026-99-99", "good": "2026-01-02"}


def test_an_empty_document_is_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "---\n---\n# only words\n---\n" + POD).skipped == []


def test_folders_within_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b/z.yml", "a.yaml", "b/y.yaml", "c.json", "d.yaml/inner.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(POD.replace("name: p", f"name: {Path(name).stem}"))
    assert list(named(load(tmp_path), "Pod")) == ["a", "y", "z", "inner"]


def test_nothing_to_read_is_an_error_that_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"{tmp_path}: no YAML file there"):
        load(tmp_path)
    with pytest.raises(SettingsError, match="nowhere: no YAML file there"):
        load(tmp_path / "nowhere")


def test_nodes_that_only_slices_name_can_be_added(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: worker-1}}")
    (tmp_path / "slices.yaml").write_text((DATA / "drivers" / "dranet.yaml").read_text())
    (tmp_path / "more.yaml").write_text((DATA / "drivers" / "nvidia.yaml").read_text())
    assert [node.metadata.name for node in missing_nodes(load(tmp_path).objects)] == ["worker-2"]


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(kind=st.sampled_from(["Pod", "Node", "ResourceSlice", "ResourceClaim", "DeviceClass"]), spec=values)
def test_no_document_whatever_its_spec_is_a_fault(
    tmp_path_factory: pytest.TempPathFactory, kind: str, spec: object
) -> None:
    version = "v1" if kind in {"Pod", "Node"} else "resource.k8s.io/v1beta1"
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    path = tmp_path_factory.mktemp("law") / "one.yaml"
    path.write_text(json.dumps(document))  # which is YAML, too
    found = load(path)
    assert len(found.skipped) + len(found.objects.get(kind, ())) == 1
