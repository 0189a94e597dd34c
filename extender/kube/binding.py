"""Binds a pod to a node: one POST of a Binding that names the pod's UID.

Owns: the write, and what a refusal means. Never: whether the pod should go there.
"""

from __future__ import annotations

import msgspec

from extender.api.core import Pod
from extender.kube.client import ApiClient
from extender.kube.undecodable import DECODE_ERRORS
from extender.model.errors import KubeError, NotFound

_decode_pod = msgspec.json.Decoder(Pod).decode

_UNCERTAIN = frozenset({0, 500, 502, 503, 504})


class Binder:
    """Posts Bindings; idempotent by UID and node.

    Args:
        client: the API server.
        within: seconds for one request; the scheduler waits for httpTimeout only.
    """

    def __init__(self, client: ApiClient, *, within: float = 5.0) -> None:
        self._client = client
        self._within = within

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Bind the pod, or find it bound already.

        The API server refuses with 409 when the pod of that name has another UID, is being deleted, or has a
        node. The scheduler repeats a bind whose answer it lost, so "has this node" is a success.

        Args:
            namespace: of the pod.
            name: of the pod.
            uid: the pod that the scheduler means; a new pod of the same name is refused.
            node: where to.

        Returns:
            The error text for ExtenderBindingResult, "" on success. Never raises for an answer of the API.
        """
        if not uid:
            return f"pod {namespace}/{name}: PodUID is missing"
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._client.post(f"{path}/binding", body, within=self._within)
        except KubeError as error:
            if error.status == 409 or error.status in _UNCERTAIN:
                return await self._as_it_is(path, uid, node, error)
            return str(error)
        return ""

    async def _as_it_is(self, path: str, uid: str, node: str, refusal: KubeError) -> str:
        """Judge by the pod itself: the bind may have been done before, or its answer lost."""
        try:
            pod = _decode_pod(await self._client.get(path, within=self._within))
        except NotFound:
            return f"{path}: the pod is gone"
        except (KubeError, *DECODE_ERRORS) as error:
            return f"{refusal}; and its state can't be read: {error}"
        if pod.metadata.uid != uid:
            return f"{path}: the pod has UID {pod.metadata.uid}, asked for {uid}"
        if pod.spec.node_name == node:
            return ""
        if pod.spec.node_name:
            return f"{path}: the pod is bound to {pod.spec.node_name} already, asked for {node}"
        return str(refusal)
