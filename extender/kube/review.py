"""Who a bearer token speaks for, and what they may read: TokenReview and SubjectAccessReview, remembered.

Owns: the two questions and a bounded memory of the answers. Never: keeps a token; what is remembered is a
keyed hash whose key is made anew by each process.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec

from extender.api.base import Wire
from extender.kube.client import ApiClient
from extender.kube.undecodable import DECODE_ERRORS
from extender.model.errors import KubeError
from extender.verbs.views import Identity

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path, no secret
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_WITHIN = 5.0

PATH_PREFIX = "/berth.scheduler"
"""Put before a path when the API server is asked about it: its default ClusterRole system:discovery lets
everybody who is authenticated "get" /api/* (meant for its own discovery), so a right to our /api/v1/fleet
under its own name would be everybody's."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _User(Wire, frozen=True, gc=False):
    """status.user of a TokenReview."""

    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(Wire, frozen=True, gc=False):
    """Whether the token is good, for whom, and for which audiences."""

    authenticated: bool = False
    user: _User = _User()
    audiences: list[str] | None = None


class _TokenReview(Wire, frozen=True, gc=False):
    """The answer to a TokenReview."""

    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Wire, frozen=True, gc=False):
    """Whether it is allowed."""

    allowed: bool = False


class _AccessReview(Wire, frozen=True, gc=False):
    """The answer to a SubjectAccessReview."""

    status: _AccessStatus = _AccessStatus()


class _Memory(Generic[K, V]):
    """Answers with an age and a bound; the least recently asked go first."""

    def __init__(self, clock: Callable[[], float], size: int) -> None:
        self._clock = clock
        self._size = size
        self._held: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> tuple[V] | None:
        held = self._held.get(key)
        if held is None:
            return None
        until, value = held
        if self._clock() >= until:
            del self._held[key]
            return None
        self._held.move_to_end(key)
        return (value,)

    def put(self, key: K, value: V, seconds: float) -> None:
        self._held[key] = (self._clock() + seconds, value)
        self._held.move_to_end(key)
        while len(self._held) > self._size:
            self._held.popitem(last=False)


class Reviewer:
    """Satisfies `TokenAuthenticator` and `Authorizer` of `extender.verbs.ports`.

    Args:
        client: the API server.
        clock: monotonic seconds.
        seconds: how long a yes is believed; a withdrawn token or right works that much longer.
        refusal_seconds: how long a no is believed.
        size: how many answers of each kind are kept.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        clock: Callable[[], float],
        seconds: float = 60.0,
        refusal_seconds: float = 10.0,
        size: int = 2048,
    ) -> None:
        self._client = client
        self._seconds = seconds
        self._refusal_seconds = refusal_seconds
        self._key = secrets.token_bytes(32)
        self._identities = _Memory[tuple[bytes, str], Identity | None](clock, size)
        self._rights = _Memory[tuple[Hashable, ...], bool](clock, size)

    async def authenticate(self, token: str, audience: str) -> Identity | None:
        """The identity behind `token` if it is valid for `audience`, else None.

        Raises:
            KubeError: the API server could not be asked; nothing is remembered then.
        """
        if not token:
            return None
        digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), key=self._key).digest()
        key = (digest, audience)
        held = self._identities.get(key)
        if held is not None:
            return held[0]
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        status = await self._ask(_TOKEN_REVIEWS, body, _TokenReview)
        identity = _identity(status.status, audience)
        self._identities.put(key, identity, self._refusal_seconds if identity is None else self._seconds)
        return identity

    async def allowed(self, identity: Identity, verb: str, path: str) -> bool:
        """Whether `identity` may do `verb` on the non-resource URL `PATH_PREFIX + path`.

        Raises:
            KubeError: the API server could not be asked; nothing is remembered then.
        """
        extra = {name: list(values) for name, values in identity.extra.items()}
        key = (
            identity.username,
            identity.uid,
            identity.groups,
            tuple(sorted((name, tuple(values)) for name, values in extra.items())),
            verb,
            path,
        )
        held = self._rights.get(key)
        if held is not None:
            return held[0]
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": identity.username,
                "uid": identity.uid,
                "groups": list(identity.groups),
                "extra": extra,
                "nonResourceAttributes": {"path": PATH_PREFIX + path, "verb": verb},
            },
        }
        answer = await self._ask(_ACCESS_REVIEWS, body, _AccessReview)
        allowed = answer.status.allowed
        self._rights.put(key, allowed, self._seconds if allowed else self._refusal_seconds)
        return allowed

    async def _ask(self, path: str, body: object, kind: type[V]) -> V:
        answer = await self._client.post(path, body, within=_WITHIN)
        try:
            return msgspec.json.decode(answer, type=kind)
        except DECODE_ERRORS as error:
            raise KubeError(f"POST {path}: the answer can't be read: {error}") from error


def _identity(status: _TokenStatus, audience: str) -> Identity | None:
    # An authenticator that knows no audiences leaves the list empty: its token is the API server's, not ours.
    if not status.authenticated or audience not in (status.audiences or ()):
        return None
    user = status.user
    return Identity(
        username=user.username,
        uid=user.uid,
        groups=tuple(user.groups or ()),
        extra=MappingProxyType({name: tuple(values) for name, values in (user.extra or {}).items()}),
    )
