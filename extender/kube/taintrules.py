"""Writes DeviceTaintRules: the quarantine that kube-scheduler's own allocator heeds.

A rule is ours when it carries label `app.kubernetes.io/managed-by: berth` *and* annotation
`berth.scheduler/quarantine`; no other rule is ever changed or deleted.

Owns: create, list and delete of ours. Never: decides which device is sick.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import Enum

import msgspec

from extender.api.meta import ObjectMeta
from extender.api.resource import DeviceTaintRule
from extender.kube.client import ApiClient
from extender.kube.kinds import DEVICE_TAINT_RULE
from extender.kube.undecodable import DECODE_ERRORS
from extender.model.device import DeviceID
from extender.model.errors import Conflict, KubeError, NotFound

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "berth"
QUARANTINE_ANNOTATION = "berth.scheduler/quarantine"
"""The device as driver/pool/device."""

_decode = msgspec.json.Decoder(DeviceTaintRule).decode


class Outcome(Enum):
    """What became of a write."""

    DONE = "done"
    ALREADY = "already"
    """It was so before."""
    FOREIGN = "foreign"
    """A rule of that name is somebody else's; untouched."""
    LEASE_LOST = "lease lost"
    """Not written: the Lease is not ours any more."""


def rule_name(device: DeviceID, key: str) -> str:
    """The name of our rule for a device and a taint key: stable, so that a new leader finds it."""
    digest = hashlib.blake2b(f"{device}\n{key}".encode(), digest_size=10).hexdigest()
    return f"berth-{digest}"


def is_ours(metadata: ObjectMeta) -> bool:
    """Whether we may change or delete the rule."""
    return (metadata.labels or {}).get(MANAGED_BY_LABEL) == MANAGED_BY and QUARANTINE_ANNOTATION in (
        metadata.annotations or {}
    )


class TaintRuleWriter:
    """Quarantines devices by rules of the served version.

    Args:
        client: the API server.
        version: of resource.k8s.io, as discovery found it.
        still_ours: whether the Lease is ours by the clock; asked before every write.
    """

    def __init__(self, client: ApiClient, version: str, still_ours: Callable[[], bool]) -> None:
        self._client = client
        self._version = version
        self._path = DEVICE_TAINT_RULE.path(version)
        self._still_ours = still_ours

    async def ours(self) -> list[DeviceTaintRule]:
        """All rules that are ours. Raises `KubeError`."""
        found = []
        query = {"labelSelector": f"{MANAGED_BY_LABEL}={MANAGED_BY}"}
        async for page in self._client.pages(self._path, query):
            for raw in page.items or ():
                rule = self._read(bytes(raw))
                if is_ours(rule.metadata):
                    found.append(rule)
        return found

    async def taint(self, device: DeviceID, *, key: str, value: str, effect: str) -> Outcome:
        """Taint one device.

        Args:
            device: which.
            key: of the taint.
            value: of the taint.
            effect: None, NoSchedule or NoExecute.

        Raises:
            KubeError: the API server refused or was not reached.
        """
        name = rule_name(device, key)
        body = {
            "apiVersion": f"{DEVICE_TAINT_RULE.group}/{self._version}",
            "kind": "DeviceTaintRule",
            "metadata": {
                "name": name,
                "labels": {MANAGED_BY_LABEL: MANAGED_BY},
                "annotations": {QUARANTINE_ANNOTATION: str(device)},
            },
            "spec": {
                "deviceSelector": {"driver": device.driver, "pool": device.pool, "device": device.device},
                "taint": {"key": key, "value": value, "effect": effect},
            },
        }
        if not self._still_ours():
            return Outcome.LEASE_LOST
        try:
            await self._client.post(self._path, body)
        except Conflict:
            rule = await self._get(name)
            if rule is None:
                raise
            return Outcome.ALREADY if is_ours(rule.metadata) else Outcome.FOREIGN
        return Outcome.DONE

    async def clear(self, name: str) -> Outcome:
        """Delete our rule of that name; a rule that was changed since we looked stays (`Conflict`).

        Raises:
            KubeError: the API server refused or was not reached.
        """
        rule = await self._get(name)
        if rule is None:
            return Outcome.ALREADY
        if not is_ours(rule.metadata):
            return Outcome.FOREIGN
        if not self._still_ours():
            return Outcome.LEASE_LOST
        preconditions = {"uid": rule.metadata.uid, "resourceVersion": rule.metadata.resource_version}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        try:
            await self._client.delete(f"{self._path}/{name}", body)
        except NotFound:
            return Outcome.ALREADY
        return Outcome.DONE

    async def _get(self, name: str) -> DeviceTaintRule | None:
        try:
            return self._read(await self._client.get(f"{self._path}/{name}"))
        except NotFound:
            return None

    def _read(self, raw: bytes) -> DeviceTaintRule:
        try:
            return _decode(raw)
        except DECODE_ERRORS as error:
            raise KubeError(f"GET {self._path}: a rule can't be read: {error}") from error
