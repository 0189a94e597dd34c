"""What a pod is for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from extender.api.meta import OwnerReference
from extender.model.workload import WorkloadClass
from extender.verbs.workload import workload_class
from tests.inventory.objects import pod

BY_PRIORITY = {"urgent": WorkloadClass.INTERACTIVE}


def classed(
    labels: dict[str, str] | None = None, owner: str = "", *, priority: str = "", devices: bool = True
) -> str:
    made = pod("q", priority_class_name=priority)
    owners = [OwnerReference(owner, "o", "u")] if owner else None
    made = replace(made, metadata=replace(made.metadata, labels=labels, owner_references=owners))
    return workload_class(made, asks_for_devices=devices, by_priority_class=BY_PRIORITY)


@pytest.mark.parametrize(
    ("labels", "owner", "priority", "expected"),
    [
        (
            {"berth.scheduler/workload-class": "batch", "jobset.sigs.k8s.io/jobset-name": "x"},
            "Job",
            "urgent",
            "batch",
        ),
        ({"jobset.sigs.k8s.io/jobset-name": "x"}, "Job", "urgent", "training"),
        ({"serving.kserve.io/inferenceservice": "x"}, "ReplicaSet", "", "inference"),
        (None, "RayCluster", "urgent", "batch"),
        (None, "ReplicaSet", "urgent", "interactive"),
        (None, "", "", "unknown"),
        ({"berth.scheduler/workload-class": "gaming"}, "", "", "unknown"),
    ],
)
def test_label_then_known_labels_then_owner_then_priority(
    labels: dict[str, str] | None, owner: str, priority: str, expected: str
) -> None:
    assert classed(labels, owner, priority=priority) == expected


def test_a_pod_without_devices_is_of_no_class_whatever_it_says() -> None:
    assert classed({"berth.scheduler/workload-class": "training"}, devices=False) == "none"
