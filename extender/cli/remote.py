"""A desk on the other side of a wire: the read API of a running Berth as a `ReadDesk`.

Never: a token over plain HTTP to another machine.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec
import pydantic

from extender.model.addresses import is_http_url, is_loopback
from extender.model.errors import BerthError
from extender.server import models
from extender.verbs.views import DecisionView, ExplainView, FleetView, GangView, NodeView

T = TypeVar("T")
TIMEOUT = 30.0


class RemoteError(BerthError):
    """The service could not be asked, or said no. The text says why."""


class RemoteDesk:
    """Asks `url`; close it after use.

    Args:
        url: Base URL of the service.
        token: A bearer token, "" for none.
        ca_file: The CA of the service's certificate; None for those of the system.

    Raises:
        RemoteError: The URL is none, the CA can't be read, or a token would go over plain HTTP.
    """

    def __init__(self, url: str, token: str = "", ca_file: Path | None = None) -> None:
        if not is_http_url(url):
            raise RemoteError(f"{url!r} is no http or https URL")
        parts = urlsplit(url)
        if token and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise RemoteError(f"{url}: a token never goes over plain HTTP to another machine")
        self._url = url.rstrip("/")
        try:
            trust = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        except OSError as error:
            raise RemoteError(f"{ca_file}: {error}") from error
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(verify=trust, headers=headers, timeout=TIMEOUT)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def fleet(self, after: str, limit: int) -> FleetView:
        """A page of nodes."""
        answer = self._get("fleet", {"after": after, "limit": limit})
        return _view(answer, models.Fleet, FleetView)

    def node(self, name: str) -> NodeView | None:
        """A node with its devices."""
        answer = self._get(f"nodes/{quote(name, safe='')}", {}, missing_ok=True)
        return None if answer is None else _view(answer, models.Node, NodeView)

    def decisions(self, limit: int, pod: str) -> Sequence[DecisionView]:
        """The newest decisions."""
        answer = self._get("decisions", {"limit": limit, "pod": pod})
        return _views(answer, models.Decisions, list[DecisionView], "decisions")

    def gangs(self) -> Sequence[GangView]:
        """Every gang."""
        return _views(self._get("gangs", {}), models.Gangs, list[GangView], "gangs")

    def explain(self, pod: Mapping[str, object], nodes: Sequence[str], limit: int) -> ExplainView:
        """What filter and prioritize would say to a document."""
        answer = self._post({"pod": pod, "nodes": list(nodes), "limit": limit})
        return _view(answer, models.Explanation, ExplainView)

    def explain_existing(
        self, namespace: str, name: str, nodes: Sequence[str], limit: int
    ) -> ExplainView | None:
        """Likewise for a pod that exists."""
        asked = {"namespace": namespace, "name": name, "nodes": list(nodes), "limit": limit}
        answer = self._post(asked, missing_ok=True)
        return None if answer is None else _view(answer, models.Explanation, ExplainView)

    def _get(self, path: str, params: Mapping[str, str | int], *, missing_ok: bool = False) -> Any:
        request = self._client.build_request("GET", f"{self._url}/api/v1/{path}", params=dict(params))
        return self._ask(request, missing_ok=missing_ok)

    def _post(self, body: Mapping[str, object], *, missing_ok: bool = False) -> Any:
        try:
            request = self._client.build_request("POST", f"{self._url}/api/v1/explain", json=body)
        except (TypeError, ValueError, RecursionError) as error:
            raise RemoteError(f"pod: can't be written as JSON: {error}") from error
        return self._ask(request, missing_ok=missing_ok)

    def _ask(self, request: httpx.Request, *, missing_ok: bool) -> bytes | None:
        try:
            answer = self._client.send(request)
        except httpx.HTTPError as error:
            raise RemoteError(f"{self._url}: {error or type(error).__name__}") from error
        if answer.status_code == httpx.codes.NOT_FOUND and missing_ok:
            return None
        if answer.status_code != httpx.codes.OK:
            raise RemoteError(f"{self._url}: {answer.status_code}: {_why(answer)}")
        return answer.content


def _view(body: bytes, model: type[models.View], view: type[T]) -> T:
    return msgspec.convert(_read(body, model), view)


def _views(body: bytes, model: type[models.View], view: type[T], name: str) -> T:
    return msgspec.convert(_read(body, model)[name], view)


def _read(body: bytes, model: type[models.View]) -> dict[str, Any]:
    try:
        return model.model_validate_json(body).model_dump(by_alias=False)
    except pydantic.ValidationError as error:
        raise RemoteError(f"the answer is not Berth's: {error.error_count()} faults") from error


def _why(answer: httpx.Response) -> str:
    try:
        failure = models.Failure.model_validate_json(answer.content)
    except pydantic.ValidationError:
        return answer.reason_phrase
    faults = [f"{fault.field}: {fault.text}" for fault in failure.fields]
    return "; ".join([failure.error, *faults])
