"""A small client of the Kubernetes API for tests: plain dicts in, plain dicts out.

Owns paths (found by API discovery), content types and errors. It holds no cache of objects and never retries.
It acts as whoever owns its token.
"""

from __future__ import annotations

import json
import ssl
import time
from typing import TYPE_CHECKING, Any, Self

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON."""

_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",  # JSON is YAML
}


class ApiError(Exception):
    """The API server refused a request; ``status`` is the HTTP status, ``reason`` that of its Status."""

    def __init__(self, method: str, path: str, response: httpx.Response) -> None:
        try:
            body = response.json()
        except ValueError:
            body = {}
        self.status = response.status_code
        self.reason = str(body.get("reason", ""))
        self.message = str(body.get("message", response.text[:500]))
        super().__init__(f"{method} {path}: {self.status} {self.reason}: {self.message}")


class ApiClient:
    """Requests to one API server under one identity; may be used from several threads."""

    def __init__(self, url: str, token: str | None, authority: Path) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            verify=ssl.create_default_context(cafile=str(authority)),
            timeout=30.0,
            trust_env=False,
        )
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """Send one request and return the decoded answer (text where it is not JSON).

        Raises:
            ApiError: the answer's status is not 2xx.
            httpx.HTTPError: there was no answer.
        """
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": content_type}
        response = self._http.request(method, path, content=content, params=params, headers=headers)
        if not response.is_success:
            raise ApiError(method, path, response)
        if "json" in response.headers.get("Content-Type", ""):
            return response.json()
        return response.text

    def ready(self) -> bool:
        """Whether the API server says that it is ready; a refused connection is no."""
        try:
            return self._http.get("/readyz", timeout=5.0).status_code == 200
        except httpx.HTTPError:
            return False

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of an object, or of a collection without ``name``.

        Without ``namespace`` a namespaced kind's collection is that of all namespaces.

        Raises:
            LookupError: the API server does not serve the kind.
        """
        if (api_version, kind) not in self._kinds:  # read again: a CRD may have come since
            for resource in self._resources(api_version):
                if "/" not in resource["name"]:
                    key = (api_version, resource["kind"])
                    self._kinds[key] = (resource["name"], resource["namespaced"])
        if (api_version, kind) not in self._kinds:
            raise LookupError(f"the API server does not serve {kind} of {api_version}")
        plural, namespaced = self._kinds[api_version, kind]
        parts = [_root(api_version)]
        if namespaced and (namespace is not None or name is not None):
            parts.append(f"namespaces/{namespace or 'default'}")
        parts.append(plural)
        if name is not None:
            parts.append(name)
        return "/".join(parts)

    def _resources(self, api_version: str) -> list[Object]:
        try:
            return list(self.request("GET", _root(api_version))["resources"])
        except ApiError as refusal:
            if refusal.status == 404:
                return []
            raise

    def _path_of(self, obj: Object) -> str:
        meta = obj["metadata"]
        return self.path(obj["apiVersion"], obj["kind"], meta.get("namespace"), meta["name"])

    def create(self, obj: Object) -> Object:
        """Create the object; a namespaced one without a namespace goes to ``default``.

        Returns:
            The object as stored.

        Raises:
            ApiError: refused.
        """
        path = self.path(obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace"), "NAME")
        created: Object = self.request("POST", path.removesuffix("/NAME"), obj)
        return created

    def apply(self, obj: Object, *, manager: str = "berth-tests", force: bool = True) -> Object:
        """Apply the object server-side.

        Returns:
            The object as stored.

        Raises:
            ApiError: refused.
        """
        applied: Object = self.request(
            "PATCH",
            self._path_of(obj),
            obj,
            params={"fieldManager": manager, "force": str(force).lower()},
            content_type=_PATCHES["apply"],
        )
        return applied

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """Return one object.

        Raises:
            ApiError: refused, or (404) there is none.
        """
        found: Object = self.request("GET", self.path(api_version, kind, namespace, name))
        return found

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Return one object, or None where there is none."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as refusal:
            if refusal.status == 404:
                return None
            raise

    def list_all(
        self, api_version: str, kind: str, namespace: str | None = None, **params: str
    ) -> Sequence[Object]:
        """Return the objects of a namespace, or of all; ``params`` such as ``labelSelector`` go as they are.

        The items carry their apiVersion and kind, which the API leaves out of lists.
        """
        items: list[Object] = []
        query = {"limit": "500", **params}
        while True:
            page = self.request("GET", self.path(api_version, kind, namespace), params=query)
            items += [{"apiVersion": api_version, "kind": kind, **item} for item in page["items"]]
            following = page["metadata"].get("continue")
            if not following:
                return items
            query["continue"] = following

    def replace(self, obj: Object, *, subresource: str | None = None) -> Object:
        """Update the object, or its ``subresource`` such as ``status``, under its resourceVersion if set."""
        replaced: Object = self.request("PUT", _join(self._path_of(obj), subresource), obj)
        return replaced

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        how: str = "merge",
        subresource: str | None = None,
    ) -> Object:
        """Patch one object; ``how`` is merge, strategic, json or apply."""
        path = _join(self.path(api_version, kind, namespace, name), subresource)
        params = {"fieldManager": "berth-tests", "force": "true"} if how == "apply" else None
        patched: Object = self.request("PATCH", path, body, params=params, content_type=_PATCHES[how])
        return patched

    def delete(
        self, api_version: str, kind: str, name: str, namespace: str | None = None, *, grace: int = 0
    ) -> None:
        """Delete one object, ``grace`` seconds from now (no kubelet ends a pod); none there is fine."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace}
        try:
            self.request("DELETE", self.path(api_version, kind, namespace, name), body)
        except ApiError as refusal:
            if refusal.status != 404:
                raise

    def delete_all(self, api_version: str, kind: str, namespace: str | None = None, **params: str) -> None:
        """Delete the objects of a namespace, or every one of a cluster-wide kind, at once."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self.request("DELETE", self.path(api_version, kind, namespace), body, params=params)

    def wait(
        self,
        api_version: str,
        kind: str,
        name: str,
        until: Callable[[Object], bool],
        namespace: str | None = None,
        *,
        seconds: float = 20.0,
    ) -> Object:
        """Poll one object until ``until(object)``; one that does not exist yet is waited for.

        Raises:
            TimeoutError: ``seconds`` went by; the text carries the object as last seen.
        """
        deadline = time.monotonic() + seconds
        while True:
            seen = self.find(api_version, kind, name, namespace)
            if seen is not None and until(seen):
                return seen
            if time.monotonic() > deadline:
                raise TimeoutError(f"{kind} {name} after {seconds:.0f} s: {json.dumps(seen)}")
            time.sleep(0.05)

    def watch(
        self,
        api_version: str,
        kind: str,
        resource_version: str,
        namespace: str | None = None,
        *,
        seconds: int = 10,
    ) -> Iterator[Object]:
        """Yield watch events (type, object) after ``resource_version``; the server ends it after ``seconds``.

        Raises:
            ApiError: refused, with 410 where the version is too old.
        """
        path = self.path(api_version, kind, namespace)
        params = {"watch": "1", "resourceVersion": resource_version, "timeoutSeconds": str(seconds)}
        with self._http.stream("GET", path, params=params, timeout=seconds + 10.0) as response:
            if not response.is_success:
                response.read()
                raise ApiError("GET", path, response)
            for line in response.iter_lines():
                if line:
                    yield json.loads(line)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _join(path: str, subresource: str | None) -> str:
    return path if subresource is None else f"{path}/{subresource}"
