"""The switch: a ConfigMap of ours that turns every veto off at once (`vetoes: "off"`).

Owns: looking at it. An API server that can't be asked changes nothing; a ConfigMap that is gone means on, and
so does any other word than off.
"""

from __future__ import annotations

import msgspec
import structlog

from extender.api.base import Wire
from extender.kube.client import ApiClient
from extender.kube.pace import Pace
from extender.kube.undecodable import DECODE_ERRORS
from extender.model.errors import KubeError, NotFound

EVERY = 2.0
"""Seconds between two looks: one small GET, no watch to keep alive."""

KEY = "vetoes"


class _ConfigMap(Wire, frozen=True, gc=False):
    """The data of a ConfigMap."""

    data: dict[str, str] | None = None


class SafetySwitch:
    """Whether vetoes count; `run` until cancelled."""

    def __init__(self, client: ApiClient, *, namespace: str, name: str, pace: Pace) -> None:
        self.vetoes = True
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        self._pace = pace
        self._decode = msgspec.json.Decoder(_ConfigMap).decode
        self._unread = False
        self._said = "on"
        self._log = structlog.get_logger(room="kube")

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await self.look()
            await self._pace.sleep(self._pace.jittered(EVERY, 0.2))

    async def look(self) -> None:
        """Read the ConfigMap once. A fault is logged when it is a new one, for this is asked every 2 s."""
        try:
            data = self._decode(await self._client.get(self._path)).data or {}
        except NotFound:
            data = {}
        except (KubeError, *DECODE_ERRORS) as error:
            if not self._unread:
                self._log.warning("the safety switch can't be read; it stays as it was", error=str(error))
            self._unread = True
            return
        if self._unread:
            self._log.info("the safety switch can be read again")
        self._unread = False
        said = data.get(KEY, "on").strip().lower()
        if said not in {"on", "off"} and said != self._said:
            self._log.warning("the safety switch is neither on nor off, so vetoes stay on", value=said)
        self._said = said
        vetoes = said != "off"
        if vetoes != self.vetoes:
            self.vetoes = vetoes
            self._log.warning("vetoes switched", vetoes="on" if vetoes else "off")
