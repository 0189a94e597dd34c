"""Faults as JSON: never a traceback, never what was sent.

Never: the faults of kube-scheduler's verbs, which have their own form.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import JSONResponse, Response

from extender.model.errors import KubeError, WireError
from extender.server.models import Failure, FieldFault


class BodyTooLargeError(WireError):
    """A body beyond the limit. What it held was not read."""


def failure(status: int, text: str, fields: Sequence[FieldFault] = ()) -> JSONResponse:
    """An answer that says why there is none."""
    body = Failure(error=text, fields=list(fields))
    return JSONResponse(body.model_dump(exclude_defaults=True), status)


def register(app: FastAPI) -> None:
    """Answer every fault of the app's routes in JSON."""
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(ValidationError, _unreadable)
    app.add_exception_handler(BodyTooLargeError, _too_large)
    app.add_exception_handler(WireError, _wire)
    app.add_exception_handler(KubeError, _kube)
    app.add_exception_handler(Exception, _internal)


def not_found(what: str) -> HTTPException:
    """A 404 that names what is missing."""
    return HTTPException(HTTPStatus.NOT_FOUND, f"{what} not found")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    text = error.detail if error.detail != phrase else f"{phrase}: {request.method} {request.url.path}"
    answer = failure(error.status_code, text)
    answer.headers.update(error.headers or {})
    return answer


async def _unreadable(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | ValidationError)
    fields = [FieldFault(field=_path(detail["loc"]), text=detail["msg"]) for detail in error.errors()]
    return failure(HTTPStatus.UNPROCESSABLE_ENTITY, "the request can't be read", fields)


async def _too_large(_request: Request, error: Exception) -> Response:
    answer = failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(error))
    answer.headers["connection"] = "close"
    return answer


async def _wire(_request: Request, error: Exception) -> Response:
    return failure(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


async def _kube(_request: Request, error: Exception) -> Response:
    structlog.get_logger(__name__).warning("API server could not be asked", error=str(error))
    return failure(HTTPStatus.SERVICE_UNAVAILABLE, "the API server could not be asked")


async def _internal(_request: Request, _error: Exception) -> Response:
    # The server logs the traceback.
    return failure(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")


def _path(loc: Sequence[Any]) -> str:
    return ".".join(str(step) for step in loc)
