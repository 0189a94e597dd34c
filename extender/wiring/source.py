"""Where cluster state comes from: an API server with a Lease, or a fleet in memory."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping

import structlog
from kubernetes.aio.client import Configuration

from extender.kube.binding import Binder as KubeBinder
from extender.kube.client import ApiClient
from extender.kube.credentials import load as load_credentials
from extender.kube.kinds import OPTIONAL, REQUIRED, Kind, KubernetesObject
from extender.kube.leader_label import LeaderLabel
from extender.kube.lease import LeaseElector, LeaseTimings, unique_identity
from extender.kube.letterbox import Letterbox
from extender.kube.pace import Pace
from extender.kube.reflector import ReflectorOptions
from extender.kube.safety import SafetySwitch
from extender.model.errors import KubeError, SettingsError
from extender.settings import LeaderElectionSettings, Settings
from extender.wiring.core import Core
from extender.wiring.driftcheck import DriftCheck
from extender.wiring.leading import Leading

RETRY_SECONDS = 1.0

WATCHED = tuple(kind.name for kind in (*REQUIRED, *OPTIONAL))
"""Kinds that a source tells the ledger of."""


class Shadow:
    """The switch without a cluster: only the mode counts."""

    def __init__(self, settings: Settings) -> None:
        self._shadow = settings.scheduler.mode == "shadow"

    def enforce(self) -> bool:
        """Vetoes count unless in shadow mode."""
        return not self._shadow

    def shadow(self) -> bool:
        """Whether prioritize answers 0 for all."""
        return self._shadow


class Always:
    """The standing of a replica that is alone with its fleet."""

    def obstacle(self) -> str:
        """Nothing is in the way."""
        return ""

    def waiting(self) -> list[str]:
        """Nothing is waited for."""
        return []


class Cluster:
    """One replica beside others in a cluster: reflectors, Lease, leader label, switch.

    It answers filter and bind only while it holds the Lease and has listed everything anew in this term: what
    it knew before may be what another leader has changed since.
    """

    def __init__(self, core: Core, client: ApiClient, *, pod_name: str, namespace: str) -> None:
        settings = core.settings
        self._core = core
        self._pace = Pace()
        self._synced_term = -1
        self._term_task: asyncio.Task[None] | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._log = structlog.get_logger("extender.wiring")
        self.letterbox = Letterbox(
            client,
            core.ledger,
            pace=self._pace,
            options=ReflectorOptions(page_limit=settings.kube.page_size),
        )
        self.safety = SafetySwitch(
            client, namespace=namespace, name=settings.scheduler.safety_config_map, pace=self._pace
        )
        self.binder = KubeBinder(client)
        self._drift = DriftCheck(
            core.ledger,
            client,
            self._watched,
            core.metrics,
            pace=self._pace,
            every=settings.kube.drift_seconds,
            page_size=settings.kube.page_size,
        )
        election = settings.leader_election
        self.elector = LeaseElector(
            client,
            namespace=namespace,
            name=election.lease_name,
            identity=unique_identity(pod_name or "berth"),
            pace=self._pace,
            on_started_leading=self._started,
            on_stopped_leading=self._stopped,
            timings=_timings(election),
        )
        self._leading = Leading(
            core,
            client,
            self._pace,
            identity=pod_name or "berth",
            still_ours=self._holds,
            enforce=self.enforce,
            served=lambda: self.letterbox.served,
        )
        self._label = (
            LeaderLabel(
                client, namespace=namespace, selector="app.kubernetes.io/name=berth", own_pod=pod_name
            )
            if pod_name
            else None
        )

    def _holds(self) -> bool:
        return self.elector.holds(self._pace.clock())

    # ---- extender.server.standing

    def obstacle(self) -> str:
        """Why this replica must not answer now."""
        waiting = self.waiting()
        if waiting:
            return f"berth is not synced yet: {', '.join(waiting)}"
        if not self.elector.holds(self._pace.clock()):
            return "another replica of berth leads"
        if self._synced_term != self.elector.term:
            return "berth has just taken the lead and lists everything anew"
        return ""

    def waiting(self) -> list[str]:
        """Kinds that have not been listed yet."""
        kinds = [kind for kind, synced in self.letterbox.synced_kinds().items() if not synced]
        return kinds if kinds or self.letterbox.synced else ["discovery"]

    def enforce(self) -> bool:
        """Vetoes count unless in shadow mode or switched off."""
        return self._core.settings.scheduler.mode != "shadow" and self.safety.vetoes

    def shadow(self) -> bool:
        """Whether prioritize answers 0 for all."""
        return self._core.settings.scheduler.mode == "shadow"

    # ---- life

    async def run(self) -> None:
        """Watch and stand for election until cancelled. A fault of our own ends it, and the process."""
        self._core.metrics.leader.set_function(lambda: float(self.elector.holds(self._pace.clock())))
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(self.letterbox.run())
            tasks.create_task(self.safety.run())
            tasks.create_task(self._stand())
            if self._core.settings.kube.drift_seconds:
                tasks.create_task(self._check_drift())

    async def _check_drift(self) -> None:
        await self.letterbox.wait_synced()
        await self._drift.run()

    def _watched(self) -> Mapping[Kind[KubernetesObject], str]:
        served = self.letterbox.served
        return {
            **{kind: kind.versions[0] for kind in REQUIRED},
            **{kind: served[kind.name] for kind in OPTIONAL if kind.name in served},
        }

    async def _stand(self) -> None:
        """Stand for election once synced, so that a leader is never an empty one."""
        await self.letterbox.wait_synced()
        standing = asyncio.create_task(self.elector.run())
        try:
            await asyncio.shield(standing)
        finally:
            try:
                await self._step_down()
            finally:
                standing.cancel()
                with contextlib.suppress(asyncio.CancelledError):  # ours; a fault of the elector goes on
                    await standing

    def _started(self, term: int) -> None:
        assert self._tasks is not None
        # A member of the group: should taking over fail, the process ends rather than lead without answering.
        self._term_task = self._tasks.create_task(self._take_over(term))

    def _stopped(self) -> None:
        if self._term_task is not None:
            self._term_task.cancel()
            self._term_task = None
        self._log.info("stopped leading")

    async def _take_over(self, term: int) -> None:
        """List everything in this term, find what may be in flight, open to the scheduler, and lead."""
        await self.letterbox.resync()
        self._find_in_flight()
        self._synced_term = term
        self._log.info("leading", term=term, in_flight=len(self._core.ledger.in_flight))
        async with asyncio.TaskGroup() as works:
            works.create_task(self._take_label())
            for name, work in self._leading.works.items():
                works.create_task(work(), name=name)

    async def _take_label(self) -> None:
        while self._label is not None:
            try:
                await self._label.take(self._holds)
            except KubeError as error:
                self._log.warning("the leader label could not be moved yet", error=str(error))
                await self._pace.sleep(RETRY_SECONDS)
            else:
                return

    async def _step_down(self) -> None:
        """Take the label off our pod while the Lease is still renewed: nobody else may put it on before."""
        if self._term_task is not None:
            self._term_task.cancel()
            await asyncio.wait({self._term_task})  # it may have been putting the label on
        if self._label is None:
            return
        try:
            await self._label.drop(self._holds)
        except KubeError as error:
            self._log.warning("the leader label stays until the next leader moves it", error=str(error))

    def _find_in_flight(self) -> None:
        """Every pod that another leader may have offered nodes to is in flight on all of them.

        So is one that we know offers of: they may be of an earlier term, and another has led since.
        """
        ledger, now = self._core.ledger, self._core.clock()
        snapshot = ledger.snapshot()
        for record in snapshot.pods.values():
            if self._core.desk.in_flight_at_start(record.pod, snapshot):
                ledger.in_flight.ended(record.uid)
                ledger.in_flight.found(record.pod, now)


def _timings(election: LeaderElectionSettings) -> LeaseTimings:
    try:
        return LeaseTimings(
            duration=election.lease_duration_seconds,
            renew_deadline=election.renew_deadline_seconds,
            retry_period=election.retry_period_seconds,
        )
    except ValueError as error:
        raise SettingsError(f"leaderElection: {error}") from error


async def credentials(settings: Settings) -> Configuration:
    """How to reach the API server. Raises KubeError when there are no usable credentials."""
    kube = settings.kube
    kubeconfig = str(kube.kubeconfig) if kube.kubeconfig is not None else None
    return await load_credentials(time.monotonic, kubeconfig, kube.context)


async def api_client(settings: Settings) -> ApiClient:
    """The client for the API server that the settings name; to be closed. Raises as `credentials`."""
    return ApiClient(
        await credentials(settings), user_agent="berth", within=settings.kube.request_timeout_seconds
    )


def connect(core: Core, client: ApiClient, environ: Mapping[str, str]) -> Cluster:
    """The cluster source of this pod (POD_NAME and POD_NAMESPACE of the environment)."""
    namespace = environ.get("POD_NAMESPACE") or core.settings.kube.namespace
    return Cluster(core, client, pod_name=environ.get("POD_NAME", ""), namespace=namespace)
