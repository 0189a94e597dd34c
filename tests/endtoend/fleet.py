"""The fleet of a test and the pods on it, as the API server shows them."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.controlplane import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.controlplane.cluster import ControlPlane

Object = dict[str, Any]
DRA = "resource.k8s.io/v1"


class Fleet:
    """Nodes, templates and pods of one test."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.cluster = cluster
        self.admin = cluster.client()
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.namespace = cluster.create_namespace(f"test-{uuid.uuid4().hex[:8]}", labels)
        self._nodes: list[str] = []

    def register(self, gpu_nodes: int, cpu_nodes: int, plugin_nodes: int = 0, a100_nodes: int = 2) -> None:
        """Register nodes gpu-00.., cpu-00.., plugin-00.., and NVIDIA's class.

        The last `a100_nodes` of the GPU nodes have that product, the others H100.
        """
        self.admin.apply(objects.device_class())
        kinds = {"gpu": gpu_nodes, "cpu": cpu_nodes, "plugin": plugin_nodes}
        self._nodes = [f"{kind}-{number:02d}" for kind, count in kinds.items() for number in range(count)]
        first_a100 = f"gpu-{gpu_nodes - a100_nodes:02d}"

        def register(name: str) -> None:
            if name.startswith("gpu"):
                product = objects.A100 if name >= first_a100 else objects.H100
                objects.register_gpu_node(self.admin, name, product=product)
            elif name.startswith("cpu"):
                objects.register_node(self.admin, objects.cpu_node(name))
            else:
                objects.register_node(self.admin, objects.device_plugin_node(name))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(register, self._nodes))

    def forget(self, node: str) -> None:
        """Remove also this node afterwards."""
        self._nodes.append(node)

    def template(
        self, name: str, count: int = 1, selectors: Sequence[str] = (), devices: Object | None = None
    ) -> None:
        """A ResourceClaimTemplate."""
        self.admin.create(
            objects.claim_template(
                name, count, namespace=self.namespace, selectors=selectors, devices=devices
            )
        )

    def claim(self, name: str, count: int = 1) -> None:
        """A ResourceClaim, for pods that share it."""
        self.admin.create(objects.claim(name, count, namespace=self.namespace))

    def create(self, pods: Iterable[Object]) -> list[str]:
        """Create pods as fast as the API takes them; their names."""
        made = list(pods)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.admin.create, made))
        return [pod["metadata"]["name"] for pod in made]

    def pod(self, name: str, **more: Any) -> Object:
        """A pod of this test's namespace."""
        return objects.pod(name, namespace=self.namespace, **more)

    def pods(self) -> dict[str, Object]:
        """All pods by name."""
        return {p["metadata"]["name"]: p for p in self.admin.list_all("v1", "Pod", self.namespace)}

    def claims(self) -> dict[str, Object]:
        """All claims by name."""
        return {c["metadata"]["name"]: c for c in self.admin.list_all(DRA, "ResourceClaim", self.namespace)}

    def wait_created(self, count: int, seconds: float = 60.0) -> None:
        """Wait until there are this many pods."""
        until = time.monotonic() + seconds
        while len(self.pods()) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"fewer than {count} pods")
            time.sleep(0.05)

    def wait_bound(self, names: Iterable[str], seconds: float = 60.0) -> dict[str, Object]:
        """Wait until these pods have a node; all pods by name."""
        wanted = set(names)
        until = time.monotonic() + seconds
        while True:
            pods = self.pods()
            missing = [n for n in wanted if not pods.get(n, {}).get("spec", {}).get("nodeName")]
            if not missing:
                return pods
            if time.monotonic() > until:
                stuck = {n: pods.get(n, {}).get("status", {}).get("conditions") for n in missing[:3]}
                raise TimeoutError(f"{len(missing)} of {len(wanted)} pods have no node: {stuck}")
            time.sleep(0.1)

    def wait_tried(self, names: Iterable[str], seconds: float = 60.0) -> dict[str, Object]:
        """Wait until kube-scheduler has said of each of these pods that it could not place it; all pods."""
        wanted = set(names)
        until = time.monotonic() + seconds
        while True:
            pods = self.pods()
            open_ = {n for n in wanted if not any(_refused(c) for c in conditions(pods[n]))}
            if not open_:
                return pods
            if time.monotonic() > until:
                raise TimeoutError(f"no failed attempt yet of {sorted(open_)[:5]}")
            time.sleep(0.1)

    def wait_most_bound(self, names: Iterable[str], quiet: float = 6.0, seconds: float = 120.0) -> list[str]:
        """Wait until no more of these pods get a node for `quiet` seconds; the bound ones."""
        wanted = set(names)
        until = time.monotonic() + seconds
        bound: set[str] = set()
        since = time.monotonic()
        while time.monotonic() < until and len(bound) < len(wanted) and time.monotonic() - since < quiet:
            now = {n for n, p in self.pods().items() if n in wanted and p["spec"].get("nodeName")}
            if len(now) > len(bound):
                since = time.monotonic()
            bound = now
            time.sleep(0.2)
        return sorted(bound)

    def devices_of(self, pod: Object, claims: dict[str, Object]) -> set[tuple[str, str, str]]:
        """(claim, request, driver/pool/device) of all results that a pod holds."""
        names = {
            s["resourceClaimName"]: s["resourceClaimName"]
            for s in pod["status"].get("resourceClaimStatuses") or ()
            if s.get("resourceClaimName")
        }
        for entry in pod["spec"].get("resourceClaims") or ():
            if entry.get("resourceClaimName"):
                names[entry["resourceClaimName"]] = entry["resourceClaimName"]
        special = pod["status"].get("extendedResourceClaimStatus") or {}
        if special.get("resourceClaimName"):
            names[special["resourceClaimName"]] = "<extended-resources>"
        found = set()
        for name, said in names.items():
            for result in claims[name]["status"]["allocation"]["devices"]["results"]:
                found.add(
                    (said, result["request"], f"{result['driver']}/{result['pool']}/{result['device']}")
                )
        return found

    def remove(self) -> None:
        """Remove pods, claims, nodes and slices of this test."""
        for api_version, kind in [("v1", "Pod"), (DRA, "ResourceClaim")]:
            self.admin.delete_all(api_version, kind, self.namespace)
        self.admin.delete_all(DRA, "ResourceSlice")
        for name in self._nodes:
            self.admin.delete("v1", "Node", name)
        self.admin.delete("v1", "Namespace", self.namespace)


def conditions(pod: Object) -> Sequence[Object]:
    """The conditions of a pod."""
    found: Sequence[Object] = pod["status"].get("conditions") or ()
    return found


def _refused(condition: Object) -> bool:
    return (condition["type"], condition["status"]) == ("PodScheduled", "False")
