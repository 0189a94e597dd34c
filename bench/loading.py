"""Puts many objects into the local API server fast: encoded once, over several kept connections."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.controlplane.cluster import ControlPlane

CONNECTIONS = 6

Body = tuple[str, bytes]
"""Path of a collection, and the object to post there."""


def body(path: str, obj: object) -> Body:
    """An object as it is posted; a wire struct or a plain dict."""
    return path, msgspec.json.encode(obj)


def stored(path: str, obj: object, **more: Any) -> Body:
    """A wire struct of `extender.sim.generated` with what only a stored object needs."""
    plain = {**msgspec.to_builtins(obj), **more}
    plain["metadata"] = {key: value for key, value in plain["metadata"].items() if key != "uid"}
    for container in plain.get("spec", {}).get("containers", ()):
        container["image"] = "pause:3.10"  # never pulled: no kubelet runs
    return path, json.dumps(plain).encode()


def load(cluster: ControlPlane, bodies: Iterable[Body]) -> None:
    """Post them all.

    Raises:
        RuntimeError: the API server refuses one.
    """
    waiting = list(bodies)
    shares = [waiting[number::CONNECTIONS] for number in range(CONNECTIONS)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for done in [pool.submit(_post, cluster, share) for share in shares]:
            done.result()


def _post(cluster: ControlPlane, bodies: Sequence[Body]) -> None:
    where = urlsplit(cluster.url)
    context = ssl.create_default_context(cafile=str(cluster.authority))
    connection = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=60, context=context)
    headers = {"Authorization": f"Bearer {cluster.token()}", "Content-Type": "application/json"}
    try:
        for path, content in bodies:
            connection.request("POST", path, content, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != http.client.CREATED:
                raise RuntimeError(f"{path}: {answer.status}: {text[:500]!r}")
    finally:
        connection.close()
