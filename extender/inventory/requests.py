"""What a pod asks of a node: the effective requests, as kube-scheduler adds them up.

Source: k8s.io/component-helpers resource.PodRequests (init, sidecar, overhead and pod-level rules).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from extender.api.core import Container, PodSpec, ResourceRequirements
from extender.api.quantity import Quantity, QuantityError

_POD_LEVEL = ("cpu", "memory")


IMPLICIT_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


_SHORT = 32  # longer texts are nobody's common quantity, and would be remembered at their length


def quantity_milli(value: str | float) -> int:
    """A quantity in thousandths, rounded up. Raises QuantityError for text that is none."""
    text = str(value)
    return _remembered(text) if len(text) <= _SHORT else Quantity.parse(text).milli_value()


@lru_cache(maxsize=4096)
def _remembered(text: str) -> int:
    """A fleet's pods say the same few hundred quantities."""
    return Quantity.parse(text).milli_value()


def is_extended_resource(name: str) -> bool:
    """Whether `name` can be an extended resource of a node, or stand for a DeviceClass.

    Source: pkg/apis/core/v1/helper IsExtendedResourceName; the implicit class names are KEP-5004's.
    """
    if name.startswith(IMPLICIT_CLASS_PREFIX):
        return True
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def container_requests(container: Container) -> dict[str, int]:
    """Requests of one container in thousandths; a limit without a request is a request."""
    resources = container.resources
    if resources is None:
        return {}
    found = {name: quantity_milli(value) for name, value in (resources.requests or {}).items()}
    for name, value in (resources.limits or {}).items():
        if name not in found:
            found[name] = quantity_milli(value)
    return found


def _add(into: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        into[name] = into.get(name, 0) + value


def _raise(into: dict[str, int], other: Mapping[str, int]) -> None:
    for name, value in other.items():
        if value > into.get(name, 0):
            into[name] = value


def pod_requests(spec: PodSpec) -> dict[str, int]:
    """Effective requests of a pod in thousandths, by resource name.

    The larger of (containers + sidecars) and the peak of each init container beside the sidecars started
    before it, plus overhead. Pod-level requests for cpu, memory and huge pages (KEP-2837) win over the sum.
    """
    total: dict[str, int] = {}
    for container in spec.containers or ():
        _add(total, container_requests(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers or ():
        own = container_requests(container)
        if container.restart_policy == "Always":
            _add(total, own)
            _add(sidecars, own)
            _raise(peak, sidecars)
        else:
            beside = dict(sidecars)
            _add(beside, own)
            _raise(peak, beside)
    _raise(total, peak)
    if spec.resources is not None and spec.resources.requests:
        for name, value in spec.resources.requests.items():
            if name in _POD_LEVEL or name.startswith("hugepages-"):
                total[name] = quantity_milli(value)
    for name, value in (spec.overhead or {}).items():
        total[name] = total.get(name, 0) + quantity_milli(value)
    return total


def unreadable_quantity(spec: PodSpec) -> str:
    """Where the first text stands that is no quantity ("spec.overhead[cpu]"); "" when all are."""
    for where, value in _quantities(spec):
        try:
            quantity_milli(value)
        except QuantityError:
            return where
    return ""


def _quantities(spec: PodSpec) -> Iterator[tuple[str, str | float]]:
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            yield from _of_resources(f"spec.{name}[{index}].resources", container.resources)
    yield from _of_resources("spec.resources", spec.resources)
    for name, value in (spec.overhead or {}).items():
        yield f"spec.overhead[{name}]", value


def _of_resources(where: str, resources: ResourceRequirements | None) -> Iterator[tuple[str, str | float]]:
    if resources is not None:
        for kind, amounts in (("requests", resources.requests), ("limits", resources.limits)):
            for name, value in (amounts or {}).items():
                yield f"{where}.{kind}[{name}]", value
