"""Quarantine as rules of the version that is served (extender.verbs.ports.QuarantineRules).

Owns: key, effect, and which device a rule is about. Never: which device is sick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from extender.api.resource import DeviceTaintRule
from extender.kube.client import ApiClient
from extender.kube.kinds import DEVICE_TAINT_RULE
from extender.kube.taintrules import Outcome, TaintRuleWriter, rule_name
from extender.model.device import DeviceID
from extender.model.errors import KubeError

TAINT_KEY = "berth.scheduler/unhealthy"
EFFECT = "NoSchedule"


class DeviceQuarantine:
    """Our rules, by device.

    Args:
        client: the API server.
        served: version by kind, of what discovery found.
        still_ours: whether the Lease is ours by the clock; asked before every write.
    """

    def __init__(
        self, client: ApiClient, served: Callable[[], Mapping[str, str]], still_ours: Callable[[], bool]
    ) -> None:
        self._client = client
        self._served = served
        self._still_ours = still_ours

    async def ours(self) -> Mapping[DeviceID, str]:
        """Names of our rules by device. Raises KubeError."""
        found: dict[DeviceID, str] = {}
        for rule in await self._writer().ours():
            device = _device(rule)
            if device is not None:
                found[device] = rule.metadata.name
        return found

    async def taint(self, device: DeviceID, reason: str) -> str | None:
        """Taint a device; the rule's name, None when the Lease is lost or the name is taken by a stranger.

        Raises:
            KubeError: the API server refused or was not reached.
        """
        outcome = await self._writer().taint(device, key=TAINT_KEY, value=reason, effect=EFFECT)
        if outcome in {Outcome.LEASE_LOST, Outcome.FOREIGN}:
            return None
        return rule_name(device, TAINT_KEY)

    async def clear(self, name: str) -> bool:
        """Delete our rule; whether it is gone or is not ours any more, and not that the Lease is lost.

        Raises:
            KubeError: the API server refused or was not reached.
        """
        return await self._writer().clear(name) is not Outcome.LEASE_LOST

    def _writer(self) -> TaintRuleWriter:
        version = self._served().get(DEVICE_TAINT_RULE.name)
        if version is None:
            raise KubeError("the API server does not serve DeviceTaintRule, or we may not list it")
        return TaintRuleWriter(self._client, version, self._still_ours)


def _device(rule: DeviceTaintRule) -> DeviceID | None:
    selector = rule.spec.device_selector
    if selector is None or not (selector.driver and selector.pool and selector.device):
        return None
    return DeviceID(selector.driver, selector.pool, selector.device)
