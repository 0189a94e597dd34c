"""k8s.io/kube-scheduler/extender/v1: what kube-scheduler sends, and what it reads of our answers.

The types have no json tags, so keys are the Go field names; only the Kubernetes objects inside are camelCase.
"""

from __future__ import annotations

import msgspec

from extender.api.core import Pod


class Extender(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """Base of the extender's own shapes."""


class NodeList(msgspec.Struct, frozen=True, gc=False):
    """v1.NodeList as it travels with nodeCacheCapable=false: nodes stay raw, to be sent back as they came."""

    items: list[msgspec.Raw] | None = None


class ExtenderArgs(Extender, frozen=True, gc=False):
    """Arguments of filter and prioritize: names when nodeCacheCapable, else whole nodes."""

    pod: Pod | None = None
    nodes: NodeList | None = None
    node_names: list[str] | None = None


class NamedNode(msgspec.Struct, frozen=True, gc=False):
    """The name of a raw node."""

    metadata: NamedMeta


class NamedMeta(msgspec.Struct, frozen=True, gc=False):
    """Only the name."""

    name: str


class ExtenderFilterResult(Extender, frozen=True, gc=False):
    """Answer of filter. A node in neither list nor map would be lost to preemption without a reason."""

    nodes: NodeList | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(Extender, frozen=True, gc=False):
    """One element of the answer of prioritize: an integer score, 0 to 10."""

    host: str = ""
    score: int = 0


class ExtenderBindingArgs(Extender, frozen=True, gc=False):
    """Arguments of bind."""

    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = msgspec.field(default="", name="PodUID")
    node: str = ""


class ExtenderBindingResult(Extender, frozen=True, gc=False):
    """Answer of bind."""

    error: str = ""


class Victims(Extender, frozen=True, gc=False):
    """Victims with whole pods (nodeCacheCapable=false)."""

    pods: list[Pod] | None = None
    num_pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")


class MetaPod(Extender, frozen=True, gc=False):
    """A victim by UID."""

    uid: str = msgspec.field(default="", name="UID")


class MetaVictims(Extender, frozen=True, gc=False):
    """Victims by UID."""

    pods: list[MetaPod] | None = None
    num_pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")


class ExtenderPreemptionArgs(Extender, frozen=True, gc=False):
    """Arguments of preempt: one of the two maps."""

    pod: Pod | None = None
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class ExtenderPreemptionResult(Extender, frozen=True, gc=False):
    """Answer of preempt: always UIDs."""

    node_name_to_meta_victims: dict[str, MetaVictims] = {}


__all__ = [
    "ExtenderArgs",
    "ExtenderBindingArgs",
    "ExtenderBindingResult",
    "ExtenderFilterResult",
    "ExtenderPreemptionArgs",
    "ExtenderPreemptionResult",
    "HostPriority",
    "MetaPod",
    "MetaVictims",
    "NamedNode",
    "NodeList",
    "Victims",
]
