"""Leader election by a coordination.k8s.io/v1 Lease.

    follower ──Lease free, or unchanged for its duration (our clock)──> PUT ──ok──> leader (term + 1)
    leader   ──renewed──> leader
    leader   ──another holder, or not renewed for renew_deadline──> follower
    leader   ──stopped──> Lease released, so that another takes over at once

Nobody compares wall clocks: a follower waits until it has *seen* no change for the Lease's duration, and the
leader counts from the moment *before* it sent its last good renewal. As renew_deadline is shorter than the
duration, the leader has stopped before a follower starts, whatever their wall clocks say.

Owns: acquire, renew, release, and `holds`. Never: what a leader does.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from extender.kube.client import ApiClient
from extender.kube.pace import Pace, micro_time
from extender.model.errors import Conflict, KubeError, NotFound

_JITTER = 0.2
_RELEASE_SECONDS = 2.0
_SHORTEST_WAIT = 0.05


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """Seconds: how long a Lease binds others, how long it binds us, and how often we come back.

    With the defaults another candidate leads at most duration + two retries (and their requests) after a
    leader was killed: 12 to 13 s.

    Raises:
        ValueError: two could lead at once, or a leader could not renew in time.
    """

    duration: float = 10.0
    renew_deadline: float = 7.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period * (1 + _JITTER) > 0:
            raise ValueError(
                "a Lease needs duration > renew_deadline > 1.2 x retry_period > 0: "
                f"{self.duration}, {self.renew_deadline}, {self.retry_period}"
            )
        if self.duration < 1 or self.duration != int(self.duration):
            raise ValueError(f"leaseDurationSeconds is a whole number of at least 1: {self.duration}")


def unique_identity(name: str) -> str:
    """An identity that no other process has, a restarted one of the same pod included."""
    return f"{name}_{secrets.token_hex(4)}"


class LeaseElector:
    """A candidate for one Lease. `run` until cancelled; the Lease is released then.

    Args:
        client: the API server.
        namespace: of the Lease.
        name: of the Lease.
        identity: ours; no other process may use it (see `unique_identity`).
        timings: durations.
        pace: clocks, sleep, dice.
        on_started_leading: told the term; must not block.
        on_stopped_leading: told when the Lease is lost or about to be released; must not block.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        pace: Pace,
        on_started_leading: Callable[[int], None],
        on_stopped_leading: Callable[[], None],
        timings: LeaseTimings | None = None,
    ) -> None:
        self.identity = identity
        self.term = 0
        """leaseTransitions of the Lease as we took it: it grows with every change of leader."""
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._namespace = namespace
        self._name = name
        self._pace = pace
        self._timings = timings or LeaseTimings()
        self._on_started = on_started_leading
        self._on_stopped = on_stopped_leading
        self._leading = False
        self._renewed_at = 0.0
        self._lease: dict[str, Any] = {}
        self._seen: tuple[object, ...] = ()
        self._seen_at = 0.0
        self._log = structlog.get_logger(room="kube", lease=f"{namespace}/{name}", identity=identity)

    @property
    def leading(self) -> bool:
        """Whether we took the Lease and have not noticed its loss; writers ask `holds` instead."""
        return self._leading

    def holds(self, now: float) -> bool:
        """Whether the Lease is surely still ours at `now` (monotonic): ask before every write."""
        return self._leading and now < self._renewed_at + self._timings.renew_deadline

    async def run(self) -> None:
        """Acquire, renew and acquire again; returns by cancellation only, after releasing the Lease."""
        try:
            while True:
                try:
                    await self._step()
                except Conflict:
                    self._log.debug("somebody else wrote the Lease first")
                except KubeError as error:
                    self._log.warning("Lease not reachable", error=str(error), leading=self._leading)
                if self._leading and not self.holds(self._pace.clock()):
                    self._lose("not renewed in time")
                await self._pace.sleep(self._wait())
        finally:
            await self._release()

    # --- one step ----------------------------------------------------------------------------------------

    async def _step(self) -> None:
        if self._leading:
            await self._renew()
            return
        try:
            await self._look()
        except NotFound:
            await self._take(create=True)
            return
        if self._holder() == self.identity or self._is_free(self._pace.clock()):
            await self._take(create=False)

    async def _renew(self) -> None:
        try:
            await self._write(self._lease, self._renewed_spec())
        except Conflict:
            # Perhaps only a label was changed, or our own renewal got through and its answer didn't.
            await self._look()
            if self._holder() != self.identity:
                self._lose(f"taken by {self._holder()!r}")
                return
            await self._write(self._lease, self._renewed_spec())
        except NotFound:
            self._lose("deleted")

    async def _take(self, *, create: bool) -> None:
        spec = dict(self._lease.get("spec") or {}) if not create else {}
        now = micro_time(self._pace.wall())
        spec.update(
            holderIdentity=self.identity,
            leaseDurationSeconds=int(self._timings.duration),
            acquireTime=now,
            renewTime=now,
            leaseTransitions=int(spec.get("leaseTransitions") or 0) + 1,
        )
        if create:
            await self._write(
                {"metadata": {"name": self._name, "namespace": self._namespace}}, spec, create=True
            )
        else:
            await self._write(self._lease, spec)
        if self._pace.clock() >= self._renewed_at + self._timings.renew_deadline:
            return  # the answer came too late to act on; the next step takes it anew
        self._leading = True
        self.term = spec["leaseTransitions"]
        self._log.info("leading", term=self.term)
        self._on_started(self.term)

    def _renewed_spec(self) -> dict[str, Any]:
        return {
            **self._lease["spec"],
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._timings.duration),
            "renewTime": micro_time(self._pace.wall()),
        }

    async def _write(self, lease: dict[str, Any], spec: dict[str, Any], *, create: bool = False) -> None:
        sent = self._pace.clock()
        body = {**lease, "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        if create:
            answer = await self._client.post(self._collection, body, within=self._within(sent))
        else:
            answer = await self._client.put(self._path, body, within=self._within(sent))
        self._remember(answer)
        self._renewed_at = sent

    async def _look(self) -> None:
        self._remember(await self._client.get(self._path, within=self._within(self._pace.clock())))

    def _remember(self, answer: bytes) -> None:
        try:
            lease = msgspec.json.decode(answer, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise KubeError(f"{self._path}: not a Lease: {error}") from error
        self._lease = lease
        spec = lease.get("spec") or {}
        seen = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if seen != self._seen:
            self._seen = seen
            self._seen_at = self._pace.clock()

    # --- judgements --------------------------------------------------------------------------------------

    def _holder(self) -> str:
        return str((self._lease.get("spec") or {}).get("holderIdentity") or "")

    def _expires_at(self) -> float:
        promised = (self._lease.get("spec") or {}).get("leaseDurationSeconds") or self._timings.duration
        return self._seen_at + float(promised)

    def _is_free(self, now: float) -> bool:
        return not self._holder() or now >= self._expires_at()

    def _within(self, now: float) -> float:
        """Seconds for a request: a leader must get two tries before its deadline."""
        half = self._timings.renew_deadline / 2
        if not self._leading:
            return half
        return max(_SHORTEST_WAIT, min(half, self._renewed_at + self._timings.renew_deadline - now))

    def _wait(self) -> float:
        now = self._pace.clock()
        wait = self._pace.jittered(self._timings.retry_period, _JITTER)
        if self._leading:
            until = self._renewed_at + self._timings.renew_deadline - now
        elif self._lease and self._holder():
            until = self._expires_at() - now
        else:
            return wait
        # A Lease that has run out is tried for at the pace of retries, not in a tight loop.
        return max(_SHORTEST_WAIT, min(wait, until)) if until > 0 else wait

    # --- ends --------------------------------------------------------------------------------------------

    def _lose(self, why: str) -> None:
        self._leading = False
        self._log.warning("stopped leading", term=self.term, why=why)
        self._on_stopped()

    async def _release(self) -> None:
        if not self._leading:
            return
        self._lose("stopping")
        spec = {**self._renewed_spec(), "holderIdentity": "", "leaseDurationSeconds": 1}
        body = {**self._lease, "spec": spec}
        try:
            await self._client.put(self._path, body, within=_RELEASE_SECONDS)
        except KubeError as error:
            self._log.warning("Lease not released; it runs out by itself", error=str(error))
