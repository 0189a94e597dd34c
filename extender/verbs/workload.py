"""What a pod is for: label, else owner and well-known labels, else PriorityClass, else unknown."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api.core import Pod
from extender.model.workload import PREFIX, WorkloadClass

CLASS_LABEL = PREFIX + "workload-class"

_BY_LABEL_KEY = {
    "serving.kserve.io/inferenceservice": WorkloadClass.INFERENCE,
    "leaderworkerset.sigs.k8s.io/name": WorkloadClass.INFERENCE,
    "trainer.kubeflow.org/trainjob-ancestor-step": WorkloadClass.TRAINING,
    "training.kubeflow.org/job-name": WorkloadClass.TRAINING,
    "jobset.sigs.k8s.io/jobset-name": WorkloadClass.TRAINING,
    "ray.io/cluster": WorkloadClass.BATCH,
}
_BY_OWNER = {
    "LeaderWorkerSet": WorkloadClass.INFERENCE,
    "InferenceService": WorkloadClass.INFERENCE,
    "PyTorchJob": WorkloadClass.TRAINING,
    "MPIJob": WorkloadClass.TRAINING,
    "TrainJob": WorkloadClass.TRAINING,
    "JobSet": WorkloadClass.TRAINING,
    "RayCluster": WorkloadClass.BATCH,
    "Job": WorkloadClass.BATCH,
    "Notebook": WorkloadClass.INTERACTIVE,
}


def workload_class(
    pod: Pod, *, asks_for_devices: bool, by_priority_class: Mapping[str, WorkloadClass]
) -> WorkloadClass:
    """The class of a pod. NONE when it asks for no device, whatever its labels say."""
    if not asks_for_devices:
        return WorkloadClass.NONE
    labels = pod.metadata.labels or {}
    own = labels.get(CLASS_LABEL)
    if own in set(WorkloadClass):
        return WorkloadClass(own)
    for key, found in _BY_LABEL_KEY.items():
        if key in labels:
            return found
    for owner in pod.metadata.owner_references or ():
        if owner.kind in _BY_OWNER:
            return _BY_OWNER[owner.kind]
    return by_priority_class.get(pod.spec.priority_class_name, WorkloadClass.UNKNOWN)
