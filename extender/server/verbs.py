"""The hot routes: filter, prioritize, preempt and bind, from bytes to bytes.

Verbs are pure; what follows from a reply (in flight, decision record, metrics, log line) is done here. A
handler does not wait between the snapshot and the record, so each reply is about one state.
Faults: filter and bind answer 200 with Error, prioritize `[]`, preempt 400 with the text (design, rule 5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus

import numpy as np
import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive

from extender.api.extender import ExtenderPreemptionArgs as PreemptionArgs
from extender.api.extender import ExtenderPreemptionResult, MetaPod, MetaVictims
from extender.inventory.inflight import Assumption, nodes_at
from extender.inventory.ledger import Ledger
from extender.model.errors import WireError
from extender.observability.metrics import Metrics, Verb
from extender.server.codec import NO_PRIORITIES, ArgsCodec
from extender.server.faults import BodyTooLargeError
from extender.server.raw import TEXT, Endpoint, Handler, Reply, read
from extender.server.record import Recorder
from extender.server.standing import Standing, Switch
from extender.verbs.bind import Binder, Binding, binding_of
from extender.verbs.desk import Desk, Question, claims_of
from extender.verbs.filter import FilterAnswer, filter_nodes
from extender.verbs.preempt import nodes_to_drop
from extender.verbs.prioritize import prioritize

_NOBODY_LISTENS = 499  # nginx's word for a client that hung up; nobody reads the answer


Answer = Callable[[bytes], Awaitable[bytes]]
"""From the body of a request to the body of its reply; raises WireError."""


@dataclass(frozen=True, slots=True)
class VerbDeps:
    """What the routes need; `clock` gives seconds since the epoch, `timer` monotonic seconds."""

    ledger: Ledger
    desk: Desk
    standing: Standing
    switch: Switch
    binder: Binder
    recorder: Recorder
    metrics: Metrics
    clock: Callable[[], float]
    timer: Callable[[], float]


class VerbRoutes:
    """Handlers of the four verbs."""

    def __init__(self, deps: VerbDeps) -> None:
        self._deps = deps
        self._codec = ArgsCodec()
        self._log = structlog.get_logger("extender.verbs")

    def endpoints(self) -> dict[str, ASGIApp]:
        """What answers a POST, by path below /extender."""
        answers: list[tuple[Verb, Answer]] = [
            ("filter", _at_once(self.filter)),
            ("prioritize", _at_once(self.prioritize)),
            ("preempt", _at_once(self.preempt)),
            ("bind", self.bind),
        ]
        return {f"/extender/{verb}": Endpoint(self._guarded(verb, answer)) for verb, answer in answers}

    # ---- bytes to bytes, without the socket

    def filter(self, body: bytes) -> bytes:
        """Answer filter. Raises WireError for a body that can't be read."""
        deps = self._deps
        args, names = self._codec.args(body)
        assert args.pod is not None
        metrics = deps.metrics.verbs["filter"]
        pod = args.pod
        if not deps.desk.scope.covers(pod):
            metrics.decided("echo")
            return self._codec.filter_result(args, names, FilterAnswer(names))
        now = deps.clock()
        snapshot = deps.ledger.snapshot()
        question = deps.desk.question(pod, names, snapshot, deps.ledger.in_flight.assumptions(now), now)
        if not question.demand.asks_for_devices:
            metrics.decided("echo")
            return self._codec.filter_result(args, names, FilterAnswer(names))
        answer = filter_nodes(deps.desk, question, enforce=deps.switch.enforce())
        if pod.metadata.uid:
            deps.ledger.in_flight.offered(pod, _offered(question, answer), now)
            if len(answer.passed) == 1 and not answer.error:
                # With one node left kube-scheduler does not ask for priorities.
                rows = tuple(question.predictions.rows(names.index(answer.passed[0])))
                self._assume(question, answer.passed[0], rows)
            deps.recorder.filtered(question, answer, shadow=deps.switch.shadow())
        return self._codec.filter_result(args, names, answer)

    def prioritize(self, body: bytes) -> bytes:
        """Answer prioritize. Raises WireError for a body that can't be read."""
        deps = self._deps
        args, names = self._codec.args(body)
        assert args.pod is not None
        pod = args.pod
        metrics = deps.metrics.verbs["prioritize"]
        if not names or not deps.desk.scope.covers(pod):
            metrics.decided("echo")
            return self._codec.zeros(names)
        now = deps.clock()
        snapshot = deps.ledger.snapshot()
        assumptions = deps.ledger.in_flight.assumptions(now)
        question = deps.desk.question(pod, names, snapshot, assumptions, now)
        ruling = prioritize(deps.desk, question)
        if deps.switch.shadow():
            metrics.decided("passed")
            return self._codec.zeros(names)
        best = int(ruling.scores.argmax())
        if question.demand.asks_for_devices and pod.metadata.uid:
            # kube-scheduler takes one of several best nodes at random: then nothing can be assumed.
            if np.count_nonzero(ruling.scores == ruling.scores[best]) == 1:
                rows = tuple(question.predictions.rows(best))
                self._assume(question, names[best], rows)
            deps.recorder.scored(question, best, int(ruling.scores[best]))
        metrics.decided("passed")
        return self._codec.priorities(names, question.slots, snapshot.topology, ruling.scores)

    def preempt(self, body: bytes) -> bytes:
        """Answer preempt. Raises WireError for a body that can't be read."""
        deps = self._deps
        args = self._codec.preemption(body)
        assert args.pod is not None
        victims = meta_victims(args)
        if deps.desk.scope.covers(args.pod) and victims:
            now = deps.clock()
            names = list(victims)
            question = deps.desk.question(args.pod, names, deps.ledger.snapshot(), (), now)
            for name in nodes_to_drop(deps.desk, question, enforce=deps.switch.enforce()):
                del victims[name]
        deps.metrics.verbs["preempt"].decided("passed" if victims else "refused")
        return self._codec.preemption_result(ExtenderPreemptionResult(victims))

    async def bind(self, body: bytes) -> bytes:
        """Answer bind. Raises WireError for a body that can't be read."""
        deps = self._deps
        wanted = binding_of(self._codec.binding(body), deps.ledger.snapshot())
        if isinstance(wanted, Binding):
            text = await deps.binder.bind(wanted.namespace, wanted.name, wanted.uid, wanted.node)
        else:
            text = wanted
        deps.metrics.verbs["bind"].decided("error" if text else "passed")
        return self._codec.binding_result(text)

    def _assume(self, question: Question, node: str, rows: tuple[int, ...]) -> None:
        assumption = Assumption(node, rows, question.now, claims_of(question.demand))
        self._deps.ledger.in_flight.assume(question.pod.metadata.uid, assumption)

    # ---- HTTP

    def _guarded(self, verb: Verb, answer: Answer) -> Handler:
        deps = self._deps
        metrics = deps.metrics.verbs[verb]

        async def handle(receive: Receive) -> Reply:
            begun: float | None = None
            try:
                body = await read(receive)
                begun = deps.timer()
                obstacle = deps.standing.obstacle()
                if obstacle:
                    metrics.fault("unsynced")
                    return self._fault(verb, obstacle, close=True)
                return Reply(await answer(body))
            except ClientDisconnect:
                return Reply(b"", _NOBODY_LISTENS)
            except WireError as error:
                metrics.fault("request")
                self._log.warning("unreadable request", verb=verb, fault=str(error))
                return self._fault(verb, f"{verb}: {error}", close=isinstance(error, BodyTooLargeError))
            except Exception as error:  # noqa: BLE001 - whatever it is, kube-scheduler must get an answer
                metrics.fault("internal")
                self._log.exception("fault", verb=verb)
                return self._fault(verb, f"{verb}: internal fault: {type(error).__name__}")
            finally:
                if begun is not None:
                    metrics.observe(deps.timer() - begun)

        return handle

    def _fault(self, verb: Verb, text: str, *, close: bool = False) -> Reply:
        """An answer that says what went wrong; `close` lets the next call reach another replica."""
        match verb:
            case "filter":
                return Reply(self._codec.filter_error(text), close=close)
            case "prioritize":
                return Reply(NO_PRIORITIES, close=close)
            case "bind":
                return Reply(self._codec.binding_result(text), close=close)
            case _:
                return Reply(text.encode(), HTTPStatus.BAD_REQUEST, TEXT, close)


def _at_once(answer: Callable[[bytes], bytes]) -> Answer:
    """A verb that waits for nothing, called as one that may."""

    async def answered(body: bytes) -> bytes:
        return answer(body)

    return answered


def _offered(question: Question, answer: FilterAnswer) -> Collection[str]:
    """The nodes that the reply leaves to the pod."""
    if answer.error or answer.slots is None:
        return ()
    topology = question.snapshot.topology
    return nodes_at(answer.slots, answer.passed, topology.names, topology.slot_of)


def meta_victims(args: PreemptionArgs) -> dict[str, MetaVictims]:
    """The candidates by UID, whichever of the two forms was sent."""
    if args.node_name_to_meta_victims is not None:
        return dict(args.node_name_to_meta_victims)
    return {
        name: MetaVictims([MetaPod(pod.metadata.uid) for pod in held.pods or ()], held.num_pdb_violations)
        for name, held in (args.node_name_to_victims or {}).items()
    }
