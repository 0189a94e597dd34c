"""The label that makes the scheduler's Service point at the leader: `berth.scheduler/leader=true`.

Owns: moving it. Never: decides who leads; it asks before every write.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from extender.api.watch import PartialObject
from extender.kube.client import MERGE_PATCH, ApiClient, is_another_object
from extender.kube.undecodable import DECODE_ERRORS
from extender.model.errors import KubeError

LEADER_LABEL = "berth.scheduler/leader"

_DROP_SECONDS = 2.0

_decode = msgspec.json.Decoder(PartialObject).decode


class LeaderLabel:
    """Puts the label on our own pod and takes it off all others of ours.

    Args:
        client: the API server.
        namespace: of Berth's pods.
        selector: label selector of Berth's pods.
        own_pod: name of this process's pod.
    """

    def __init__(self, client: ApiClient, *, namespace: str, selector: str, own_pod: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._selector = selector
        self._own = own_pod

    async def take(self, still_ours: Callable[[], bool]) -> bool:
        """Move the label to our pod; call it once everything is synced in this term.

        Others lose it first, so that the Service never selects two replicas.

        Args:
            still_ours: whether the Lease is ours by the clock; asked before every write.

        Returns:
            Whether our pod has it now; False when the Lease was lost on the way.

        Raises:
            KubeError: a request failed; try again while the Lease is ours.
        """
        query = {"labelSelector": ",".join(filter(None, (self._selector, LEADER_LABEL)))}
        async for page in self._client.pages(self._path, query):
            for raw in page.items or ():
                try:
                    metadata = _decode(raw).metadata
                except DECODE_ERRORS as error:
                    raise KubeError(f"GET {self._path}: not a pod: {error}") from error
                if metadata.name == self._own:
                    continue
                if not still_ours():
                    return False
                await self._remove(metadata.name, metadata.uid)
        if not still_ours():
            return False
        await self._client.patch(
            f"{self._path}/{self._own}", {"metadata": {"labels": {LEADER_LABEL: "true"}}}, MERGE_PATCH
        )
        return True

    async def drop(self, still_ours: Callable[[], bool]) -> None:
        """Take the label off our own pod, before the Lease is given back.

        Args:
            still_ours: whether the Lease is ours by the clock; once it is not, the next leader takes it off.

        Raises:
            KubeError: the API server refused or was not reached in time.
        """
        if still_ours():
            await self._remove(self._own, "", within=_DROP_SECONDS)

    async def _remove(self, name: str, uid: str, *, within: float | None = None) -> None:
        metadata: dict[str, object] = {"labels": {LEADER_LABEL: None}}
        if uid:
            metadata["uid"] = uid  # a precondition: not a new pod of the same name
        try:
            await self._client.patch(
                f"{self._path}/{name}", {"metadata": metadata}, MERGE_PATCH, within=within
            )
        except KubeError as error:
            if not is_another_object(error):
                raise
            # That pod is gone, and its label with it.
