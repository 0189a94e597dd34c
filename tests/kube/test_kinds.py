from __future__ import annotations

from typing import Any

import pytest

from extender.api.resource import DeviceTaintRule
from extender.api.scheduling import PodGroup, Workload
from extender.kube.kinds import OPTIONAL, POD, POD_GROUP, REQUIRED, RESOURCE_SLICE, WORKLOAD, Kind


def test_paths_are_those_of_core_and_of_groups() -> None:
    assert POD.path("v1") == "/api/v1/pods"
    assert RESOURCE_SLICE.path("v1") == "/apis/resource.k8s.io/v1/resourceslices"


@pytest.mark.parametrize("kind", REQUIRED + OPTIONAL, ids=lambda kind: kind.name)
def test_every_kind_reads_a_line_of_its_watch(kind: Kind[Any]) -> None:
    event = kind.event_decoder().decode(
        b'{"type":"ADDED","object":{"kind":"x","metadata":{"name":"a","unknown":[1]},"more":{}}}'
    )
    assert (event.type, event.object.metadata.name) == ("ADDED", "a")
    assert isinstance(event.object, kind.struct)


def test_pod_groups_of_both_shapes_are_read() -> None:
    old = b'{"spec":{"podGroupTemplateRef":{"workload":{"workloadName":"w","podGroupTemplateName":"t"}},\
"schedulingPolicy":{"gang":{"minCount":4}},"disruptionMode":"Pod"}}'
    new = b'{"spec":{"workloadRef":{"workloadName":"w","templateName":"t"},\
"schedulingPolicy":{"gang":{"minCount":4}},"disruptionMode":{"all":{}}}}'
    for text in (old, new):
        group: PodGroup = POD_GROUP.decoder().decode(text)
        assert group.spec.scheduling_policy is not None
        assert group.spec.scheduling_policy.gang is not None
        assert group.spec.scheduling_policy.gang.min_count == 4


def test_workloads_of_both_shapes_are_read() -> None:
    old = b'{"spec":{"podGroups":[{"name":"t","policy":{"gang":{"minCount":2}}}]}}'
    new = b'{"spec":{"podGroupTemplates":[{"name":"t","schedulingPolicy":{"basic":{}}}]}}'
    first: Workload = WORKLOAD.decoder().decode(old)
    second: Workload = WORKLOAD.decoder().decode(new)
    assert first.spec.pod_groups is not None
    assert second.spec.pod_group_templates is not None


def test_a_taint_rule_of_any_version_is_read() -> None:
    decoder = next(kind for kind in OPTIONAL if kind.name == "DeviceTaintRule").decoder()
    rule = decoder.decode(
        b'{"spec":{"deviceSelector":{"driver":"d","deviceClassName":"c"},"taint":{"key":"k"}}}'
    )
    assert isinstance(rule, DeviceTaintRule)
    assert rule.spec.taint.key == "k"
