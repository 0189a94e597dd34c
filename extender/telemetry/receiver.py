"""`POST /telemetry/v1/samples`: from request to `Intake`, by way of every check that keeps a node to itself.

    peer's bucket -> token -> account, node claim -> node's bucket -> size -> schema, ranges -> node -> order
         429          401            403                   429         413         400         403      409

Whatever is refused is counted and changes nothing. Never: trusts a word of the body about who sent it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from extender.api.telemetry import PATH, SCHEMA, Sample, SchemaHeader
from extender.inventory.telemetry import Refusal
from extender.model.addresses import is_loopback
from extender.model.errors import KubeError
from extender.telemetry.body import BodyRefused, inflate, read_bounded
from extender.telemetry.intake import Intake
from extender.telemetry.limits import Buckets
from extender.verbs.ports import TokenAuthenticator
from extender.verbs.views import Identity

AUDIENCE: Final = "berth"
NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"
_JSON_TYPES: Final = frozenset({"application/json"})
_MSGPACK_TYPES: Final = frozenset({"application/msgpack", "application/vnd.msgpack"})


class _Decoder(Protocol):
    def decode(self, body: bytes, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, rates a second. `failures` are refused tokens of one peer address."""

    body: int = 1 << 20
    inflated: int = 4 << 20
    node_rate: float = 2.0
    node_burst: float = 20.0
    failure_rate: float = 0.2
    failure_burst: float = 10.0
    most_nodes: int = 20_000
    most_peers: int = 20_000


@dataclass(frozen=True, slots=True)
class ReceiverDeps:
    """What the route needs. `accounts` may send, by username; empty: all with a node claim."""

    intake: Intake
    authenticator: TokenAuthenticator
    now: Callable[[], float]
    audience: str = AUDIENCE
    accounts: Collection[str] = ()
    limits: Limits = field(default_factory=Limits)


class _Refused(Exception):  # noqa: N818 - an answer, not a fault
    def __init__(self, status: HTTPStatus, why: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.why = why


def routes(deps: ReceiverDeps) -> list[Route]:
    """The routes to register on the app."""
    return [Route(PATH, _Receiver(deps), methods=["POST"])]


class _Receiver:
    def __init__(self, deps: ReceiverDeps) -> None:
        limits = deps.limits
        self._deps = deps
        self._nodes = Buckets(limits.node_rate, limits.node_burst, limits.most_nodes)
        self._failures = Buckets(limits.failure_rate, limits.failure_burst, limits.most_peers)
        self._decoders: dict[str, tuple[_Decoder, _Decoder]] = {
            **dict.fromkeys(_JSON_TYPES, (msgspec.json.Decoder(Sample), msgspec.json.Decoder(SchemaHeader))),
            **dict.fromkeys(
                _MSGPACK_TYPES, (msgspec.msgpack.Decoder(Sample), msgspec.msgpack.Decoder(SchemaHeader))
            ),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As an ASGI app, which spares each sample a few layers."""
        await (await self._answer(Request(scope, receive)))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            node = await self._sender(request)
            sample = self._decode(request, await self._body(request))
            self._take(sample, node)
        except (_Refused, BodyRefused) as refused:
            if refused.why:  # else counted by the intake
                self._deps.intake.metrics.refused.labels(refused.why).inc()
            headers = {"connection": "close"} if refused.why == "size" else {}
            if refused.status is HTTPStatus.UNAUTHORIZED:
                headers["www-authenticate"] = "Bearer"
            return Response(str(refused), refused.status, headers=headers)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    def _take(self, sample: Sample, node: str) -> None:
        if sample.node != node:
            raise _Refused(HTTPStatus.FORBIDDEN, "node", "node: not the node of the token")
        refusal = self._deps.intake.sample(sample, self._deps.now())
        if refusal is Refusal.CONTRADICTORY:
            raise _Refused(HTTPStatus.BAD_REQUEST, "", "devices: the sample contradicts itself")
        if refusal is not None:
            raise _Refused(HTTPStatus.CONFLICT, "", f"sequence: {refusal}")

    async def _sender(self, request: Request) -> str:
        """The node that the token speaks for."""
        peer = request.client.host if request.client else ""
        now = self._deps.now()
        if self._failures.level(peer, now) < 1.0:
            raise _Refused(HTTPStatus.TOO_MANY_REQUESTS, "peer rate", "too many refused tokens")
        if request.scope["scheme"] != "https" and not is_loopback(peer):
            raise _Refused(HTTPStatus.FORBIDDEN, "plain http", "tokens are not accepted over plain HTTP")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _Refused(HTTPStatus.UNAUTHORIZED, "no token", "a bearer token is required")
        try:
            identity = await self._deps.authenticator.authenticate(token.strip(), self._deps.audience)
        except KubeError as fault:
            raise _Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, "review failed", "the token can't be reviewed just now"
            ) from fault
        if identity is None:
            self._failures.allow(peer, now)
            raise _Refused(
                HTTPStatus.UNAUTHORIZED, "token", f"the token is not valid for {self._deps.audience}"
            )
        node = self._node_of(identity)
        if node is None:
            self._failures.allow(peer, now)
            raise _Refused(HTTPStatus.FORBIDDEN, "account", "the token speaks for no node agent")
        if not self._nodes.allow(node, now):
            raise _Refused(HTTPStatus.TOO_MANY_REQUESTS, "node rate", f"node {node}: too many samples")
        return node

    def _node_of(self, identity: Identity) -> str | None:
        accounts = self._deps.accounts
        if accounts and identity.username not in accounts:
            return None
        claim = identity.extra.get(NODE_CLAIM, ())
        return claim[0] if len(claim) == 1 and claim[0] else None

    async def _body(self, request: Request) -> bytes:
        limits = self._deps.limits
        body = await read_bounded(request, limits.body)
        return inflate(body, request.headers.get("content-encoding", "").strip().lower(), limits.inflated)

    def _decode(self, request: Request, body: bytes) -> Sample:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        decoders = self._decoders.get(kind)
        if decoders is None:
            text = f"content-type: {kind[:60]!r} is neither JSON nor MessagePack"
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content type", text)
        decoder, header = decoders
        try:
            sample: Sample = decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            self._known_schema(header, body)
            raise _Refused(HTTPStatus.BAD_REQUEST, "malformed", f"body: {fault}") from fault
        if sample.schema != SCHEMA:
            raise _Refused(HTTPStatus.BAD_REQUEST, "schema", f"schema: {sample.schema} is not {SCHEMA}")
        return sample

    @staticmethod
    def _known_schema(header: _Decoder, body: bytes) -> None:
        try:
            schema = header.decode(body).schema
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if schema != SCHEMA:
            raise _Refused(HTTPStatus.BAD_REQUEST, "schema", f"schema: {schema} is not {SCHEMA}")
