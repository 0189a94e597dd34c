"""What only the leader does beside answering: quarantine, nudges, events of health and ignored annotations.

Never: behaviour of its own, or a write without the Lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from prometheus_client import Gauge

from extender.admission.annotations import Annotations
from extender.admission.nudging import Nudging, Waiting
from extender.admission.quarantine import Quarantine
from extender.admission.ward import ward
from extender.api.core import Pod
from extender.inventory.health import Transition
from extender.kube.client import ApiClient
from extender.kube.events import EventRecorder, Regarding
from extender.kube.nudge import Nudger
from extender.kube.pace import Pace
from extender.kube.quarantine import DeviceQuarantine
from extender.observability.readings import CountsCollector
from extender.wiring.core import Core
from extender.wiring.tasks import Work

NAMED_DEVICES = 8
"""So many devices are named in one event."""


class Leading:
    """Builds the leader's works; each runs for one term and is cancelled at its end."""

    def __init__(
        self,
        core: Core,
        client: ApiClient,
        pace: Pace,
        *,
        identity: str,
        still_ours: Callable[[], bool],
        enforce: Callable[[], bool],
        served: Callable[[], Mapping[str, str]],
    ) -> None:
        """`still_ours`: whether the Lease is ours by the clock. `served`: version by optional kind."""
        self._core = core
        self._still_ours = still_ours
        self._events = EventRecorder(client, instance=identity, pace=pace)
        core.registry.register(
            CountsCollector(
                "berth_events", "Kubernetes Events by what became of them.", ("outcome",), self._written
            )
        )
        core.telemetry.listeners.append(self._transitioned)
        annotations = Annotations(core.ledger, core.desk.scope, self._ignored)
        self.works: dict[str, Work] = {"events": self._events.run, "annotations": annotations.run}
        if core.settings.quarantine.enabled:
            self.works["quarantine"] = self._quarantine(DeviceQuarantine(client, served, still_ours), enforce)
        if core.settings.nudges.enabled:
            self.works |= self._nudges(client, pace, enforce)

    def _quarantine(self, rules: DeviceQuarantine, enforce: Callable[[], bool]) -> Work:
        core = self._core
        quarantine = Quarantine(
            rules,
            lambda: ward(core.ledger.snapshot().topology, core.telemetry.lookout, core.clock()),
            enforce=enforce,
            share=core.settings.quarantine.max_share,
            quiet_s=core.telemetry.health.table.quiet_s,
            interval_s=core.settings.quarantine.interval_seconds,
        )
        text = "Devices that carry a rule of ours, and sick ones that had no room under the share."
        devices = Gauge("berth_quarantine_devices", text, ["state"], registry=core.registry)
        devices.labels("quarantined").set_function(lambda: quarantine.tainted)
        devices.labels("held back").set_function(lambda: quarantine.held_back)
        text = "Looks that ended in a fault."
        core.registry.register(
            CountsCollector("berth_quarantine_faults", text, (), lambda: {(): quarantine.failed})
        )
        return quarantine.run

    def _nudges(self, client: ApiClient, pace: Pace, enforce: Callable[[], bool]) -> dict[str, Work]:
        core, wanted = self._core, self._core.settings.nudges
        nudger = Nudger(client, self._still_ours, pace=pace, per_second=wanted.per_second, burst=wanted.burst)
        waiting = Waiting(core.ledger, core.desk, core.clock, enforce)
        nudging = Nudging(waiting, nudger, interval_s=wanted.interval_seconds)

        def nudged() -> dict[tuple[str, ...], float]:
            stats = nudger.stats
            return {("sent",): stats.sent, ("failed",): stats.failed, ("vanished",): stats.vanished}

        text = "Nudges by what became of them."
        core.registry.register(CountsCollector("berth_nudges", text, ("outcome",), nudged))
        kept = Gauge("berth_waiting_pods", "Pods that lasting reasons keep waiting.", registry=core.registry)
        kept.set_function(lambda: len(waiting))
        return {"nudging": nudging.run, "nudges": nudger.run}

    def _written(self) -> dict[tuple[str, ...], float]:
        stats = self._events.stats
        return {("written",): stats.written, ("failed",): stats.failed, ("dropped",): stats.dropped}

    def _ignored(self, pod: Pod, text: str) -> None:
        """An event about a pod with an annotation that can't be used."""
        if self._still_ours():
            about = pod.metadata
            self._events.record(
                Regarding("Pod", about.name, about.namespace, about.uid),
                type="Warning",
                reason="AnnotationIgnored",
                note=text,
                action="Read",
            )

    def _transitioned(self, transitions: Sequence[Transition]) -> None:
        """An event about the node; a reason that many devices of a node share is told once."""
        if not self._still_ours():
            return
        told: dict[tuple[str, str, bool], list[Transition]] = {}
        for each in transitions:
            told.setdefault((each.node, str(each.reason), each.entered), []).append(each)
        topology = self._core.ledger.snapshot().topology
        for (name, reason, entered), same in told.items():
            slot = topology.slot_of.get(name)
            node = topology.nodes[slot] if slot is not None else None
            if node is not None:
                self._events.record(
                    Regarding("Node", name, uid=node.metadata.uid),
                    type="Warning" if entered else "Normal",
                    reason=reason,
                    note=_note(same),
                    action="Watch",
                )


def _note(same: Sequence[Transition]) -> str:
    """What happened to the devices of one node that share a reason."""
    named = ", ".join(each.uuid for each in same[:NAMED_DEVICES] if each.uuid) or "the whole node"
    more = f" and {len(same) - NAMED_DEVICES} more" if len(same) > NAMED_DEVICES else ""
    return f"{named}{more}: {same[0].text if same[0].entered else 'no longer so'}"
