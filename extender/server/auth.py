"""Who may read `/api`: a bearer token, reviewed by the API server, then an access review on the path.

Never: a token over plain HTTP, in a log or in an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import HTTPException, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from extender.model.addresses import is_loopback
from extender.verbs.ports import Authorizer, TokenAuthenticator
from extender.verbs.views import Identity

_BEARER = HTTPBearer(auto_error=False, description="A token of the cluster with Berth's audience.")

Guard = Callable[..., Awaitable[Identity]]
"""A FastAPI dependency that lets a request through or raises an HTTPException."""


@dataclass(frozen=True, slots=True)
class Door:
    """How `/api` is guarded.

    `loopback` accepts tokens over plain HTTP from this machine, for a server that listens on nothing else.
    """

    authenticator: TokenAuthenticator
    authorizer: Authorizer
    audience: str
    loopback: bool = False


def guard(door: Door) -> Guard:
    """The dependency that guards a route.

    It answers 401 without a valid token, 403 without the right to the path or over plain HTTP; a `KubeError`
    of the reviews passes through.
    """

    async def check(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
    ) -> Identity:
        if request.url.scheme != "https" and not (door.loopback and _from_here(request)):
            raise HTTPException(HTTPStatus.FORBIDDEN, "tokens are not accepted over plain HTTP")
        if credentials is None or not credentials.credentials:
            raise _unauthorized("a bearer token is required")
        identity = await door.authenticator.authenticate(credentials.credentials, door.audience)
        if identity is None:
            raise _unauthorized("the token is not valid for this audience")
        verb, path = request.method.lower(), request.url.path
        if not await door.authorizer.allowed(identity, verb, path):
            raise HTTPException(HTTPStatus.FORBIDDEN, f"{identity.username!r} may not {verb} {path}")
        return identity

    return check


def _unauthorized(text: str) -> HTTPException:
    return HTTPException(HTTPStatus.UNAUTHORIZED, text, {"WWW-Authenticate": "Bearer"})


def _from_here(request: Request) -> bool:
    return request.client is not None and is_loopback(request.client.host)
