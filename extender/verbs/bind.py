"""bind: what is to be written. The writing itself is the edge's (`ports.Binder`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from extender.api.extender import ExtenderBindingArgs
from extender.inventory.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Binding:
    """A Binding to post, with the UID as its precondition."""

    namespace: str
    name: str
    uid: str
    node: str


class Binder(Protocol):
    """Posts a Binding; idempotent by UID and node."""

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Return "" when the pod is bound to the node (now, or before), else what went wrong."""


def binding_of(args: ExtenderBindingArgs, snapshot: Snapshot) -> Binding | str:
    """The Binding to post, "" when the ledger already shows it done, or the reason why not.

    A pod that is known under another UID was deleted and made again: its old binding must not hit the new one
    (kubernetes#102761).
    """
    for field, value in (
        ("PodName", args.pod_name),
        ("PodNamespace", args.pod_namespace),
        ("PodUID", args.pod_uid),
        ("Node", args.node),
    ):
        if not value:
            return f"{field} is empty"
    pod = snapshot.pod_named(args.pod_namespace, args.pod_name)
    if pod is not None and pod.metadata.uid != args.pod_uid:
        # Should it be we who are behind, the scheduler asks again in a second.
        return (
            f"pod {args.pod_namespace}/{args.pod_name} has UID {pod.metadata.uid}, not PodUID {args.pod_uid}"
        )
    if pod is not None and pod.spec.node_name:
        if pod.spec.node_name == args.node:
            return ""
        return f"pod {args.pod_namespace}/{args.pod_name} is already bound to {pod.spec.node_name}"
    return Binding(args.pod_namespace, args.pod_name, args.pod_uid, args.node)
