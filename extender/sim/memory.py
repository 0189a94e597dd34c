"""A small API in memory: objects by kind, told to a sink as a watch would tell them.

Stands in for the API server in the demo. Claims of templates are made when their pod is, as the
resourceclaim controller does. Never: validation, admission, or a version history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from extender.api.core import Pod, PodResourceClaim, PodResourceClaimStatus
from extender.api.meta import ObjectMeta, OwnerReference
from extender.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from extender.model.errors import Conflict, NotFound
from extender.model.ids import ObjectKey
from extender.verbs.ports import ObjectSink

_replace = msgspec.structs.replace


class MemoryApi:
    """Objects by kind and key; every write goes to the sink at once."""

    def __init__(self, sink: ObjectSink) -> None:
        self._sink = sink
        self._objects: dict[str, dict[ObjectKey, Any]] = {}
        self._version = 0

    def load(self, objects: Mapping[str, Iterable[Any]], kinds: Iterable[str]) -> None:
        """Take a whole fleet; the sink gets one list for each of `kinds`, like a reflector's first."""
        for kind, members in objects.items():
            table = self._objects.setdefault(kind, {})
            for obj in members:
                stored = self._stamped(kind, obj)
                table[_key(stored)] = stored
        for pod in list(self._objects.get("Pod", {}).values()):
            self._make_claims(pod, tell=False)
        for kind in kinds:
            self._sink.replaced(kind, list(self._objects.get(kind, {}).values()), ())

    def get(self, kind: str, namespace: str, name: str) -> Any:
        """An object. Raises NotFound."""
        try:
            return self._objects[kind][ObjectKey(namespace, name)]
        except KeyError as error:
            raise NotFound(f"{kind} {namespace}/{name} does not exist", 404) from error

    def all(self, kind: str) -> list[Any]:
        """All objects of a kind."""
        return list(self._objects.get(kind, {}).values())

    def create(self, kind: str, obj: Any) -> Any:
        """Add an object. Raises Conflict when its name is taken."""
        stored = self._stamped(kind, obj)
        if _key(stored) in self._objects.setdefault(kind, {}):
            raise Conflict(f"{kind} {_key(stored)} exists", 409)
        self._put(kind, stored)
        if isinstance(stored, Pod):
            return self._make_claims(stored, tell=True)
        return stored

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object. Raises NotFound.

        As the resourceclaim controller does: a pod's own claims go with it, others lose its reservation, and
        the last reservation takes the allocation along.
        """
        obj = self.get(kind, namespace, name)
        del self._objects[kind][ObjectKey(namespace, name)]
        self._sink.deleted(kind, obj)
        if isinstance(obj, Pod):
            for claim in self.all("ResourceClaim"):
                owners = claim.metadata.owner_references or ()
                if any(owner.uid == obj.metadata.uid for owner in owners):
                    self.delete("ResourceClaim", claim.metadata.namespace, claim.metadata.name)
                else:
                    self._leave(claim, obj.metadata.uid)

    def allocate(self, namespace: str, name: str, allocation: AllocationResult, pod: Pod) -> ResourceClaim:
        """Write an allocation (kept when there is one already) and reserve the claim for a pod, once."""
        claim: ResourceClaim = self.get("ResourceClaim", namespace, name)
        consumer = ResourceClaimConsumerReference("pods", pod.metadata.name, pod.metadata.uid)
        reserved = list(claim.status.reserved_for or ())
        if consumer not in reserved:
            reserved.append(consumer)
        status = _replace(
            claim.status, allocation=claim.status.allocation or allocation, reserved_for=reserved
        )
        stored: ResourceClaim = self._put("ResourceClaim", _replace(claim, status=status))
        return stored

    def _leave(self, claim: ResourceClaim, uid: str) -> None:
        """The pod uses the claim no more."""
        reserved = claim.status.reserved_for or []
        left = [consumer for consumer in reserved if consumer.uid != uid]
        if len(left) < len(reserved):
            allocation = claim.status.allocation if left else None
            status = _replace(claim.status, reserved_for=left or None, allocation=allocation)
            self._put("ResourceClaim", _replace(claim, status=status))

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Bind a pod: "" when it is on the node now, else what is wrong (`verbs.bind.Binder`)."""
        try:
            pod: Pod = self.get("Pod", namespace, name)
        except NotFound as error:
            return str(error)
        if pod.metadata.uid != uid:
            return f"pod {namespace}/{name} has another UID now"
        if pod.spec.node_name:
            return "" if pod.spec.node_name == node else f"already bound to {pod.spec.node_name}"
        self._put("Pod", _replace(pod, spec=_replace(pod.spec, node_name=node)))
        return ""

    def _make_claims(self, pod: Pod, *, tell: bool) -> Pod:
        """Claims from templates, and their names in the pod's status.

        Where there is no such template the pod waits without, as it does in a cluster.
        """
        statuses = list(pod.status.resource_claim_statuses or ())
        known = {status.name for status in statuses}
        for entry in pod.spec.resource_claims or ():
            template = self._template(pod, entry)
            if template is None or entry.name in known:
                continue
            claim = ResourceClaim(
                metadata=ObjectMeta(
                    name=self._free_name(f"{pod.metadata.name}-{entry.name}", pod.metadata.namespace),
                    namespace=pod.metadata.namespace,
                    owner_references=[OwnerReference("Pod", pod.metadata.name, pod.metadata.uid)],
                ),
                spec=template.spec.spec,
            )
            stored = self._store("ResourceClaim", claim, tell=tell)
            statuses.append(PodResourceClaimStatus(entry.name, stored.metadata.name))
        if len(statuses) == len(known):
            return pod
        status = _replace(pod.status, resource_claim_statuses=statuses)
        updated: Pod = self._store("Pod", _replace(pod, status=status), tell=tell)
        return updated

    def _template(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaimTemplate | None:
        templates = self._objects.get("ResourceClaimTemplate", {})
        return templates.get(ObjectKey(pod.metadata.namespace, entry.resource_claim_template_name or ""))

    def _free_name(self, wanted: str, namespace: str) -> str:
        """The name, or with a number after it: somebody else's claim is never written over."""
        taken = self._objects.get("ResourceClaim", {})
        name, number = wanted, 1
        while ObjectKey(namespace, name) in taken:
            number += 1
            name = f"{wanted}-{number}"
        return name

    def _put(self, kind: str, obj: Any) -> Any:
        return self._store(kind, obj, tell=True)

    def _store(self, kind: str, obj: Any, *, tell: bool) -> Any:
        stored = self._stamped(kind, obj)
        self._objects.setdefault(kind, {})[_key(stored)] = stored
        if tell:
            self._sink.upserted(kind, stored)
        return stored

    def _stamped(self, kind: str, obj: Any) -> Any:
        """The object with a resourceVersion of its own, and a UID if it has none."""
        self._version += 1
        meta = obj.metadata
        uid = meta.uid or f"{kind.lower()}-{self._version}"
        return _replace(obj, metadata=_replace(meta, uid=uid, resource_version=str(self._version)))


def _key(obj: Any) -> ObjectKey:
    return ObjectKey(obj.metadata.namespace, obj.metadata.name)
