"""The manifests of deploy/ as objects, and a strict way to apply them.

Owns building with kustomize and collecting what the API server warns of. It starts no cluster.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tests.controlplane.build import kustomize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.controlplane.cluster import ControlPlane

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BASE = "base"
BIND = "overlays/bind"
SECOND_SCHEDULER = "overlays/second-scheduler"
TELEMETRY = "overlays/telemetry"
ALL = (BASE, BIND, SECOND_SCHEDULER)
NAMESPACE = "berth-system"
SERVICE_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:berth"


def build(name: str) -> list[Object]:
    """Return the objects of one kustomization, in its order.

    Raises:
        ValueError: kustomize refuses it.
    """
    return [each for each in yaml.safe_load_all(kustomize(DEPLOY / name)) if each is not None]


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """Return those of one kind."""
    return [each for each in objects if each["kind"] == kind]


def scheduler_config(name: str) -> str:
    """Return the text of a kustomization's KubeSchedulerConfiguration, the base's where it has none."""
    own = DEPLOY / name / "files" / "kube-scheduler.yaml"
    return (own if own.exists() else DEPLOY / BASE / "files" / "kube-scheduler.yaml").read_text()


class Applier:
    """Applies objects server-side as the administrator, strictly, and keeps every warning."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._paths = cluster.client()
        self._http = httpx.Client(
            base_url=cluster.url,
            headers={"Authorization": f"Bearer {cluster.token()}"},
            verify=ssl.create_default_context(cafile=str(cluster.authority)),
            trust_env=False,
            timeout=30.0,
        )
        self.warnings: list[str] = []

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def apply(self, obj: Object) -> Object:
        """Apply one object; an unknown or repeated field is an error.

        Raises:
            httpx.HTTPStatusError: refused; the notes carry the API server's text.
        """
        meta = obj["metadata"]
        path = self._paths.path(obj["apiVersion"], obj["kind"], meta.get("namespace"), meta["name"])
        return self._send(
            "PATCH",
            path,
            obj,
            {"fieldManager": "deploy", "fieldValidation": "Strict"},
            "application/apply-patch+yaml",
        )

    def create(self, obj: Object) -> Object:
        """Create one namespaced object; an unknown field is an error.

        Raises:
            httpx.HTTPStatusError: refused; the notes carry the API server's text.
        """
        path = self._paths.path(obj["apiVersion"], obj["kind"], obj["metadata"]["namespace"], "NAME")
        return self._send(
            "POST", path.removesuffix("/NAME"), obj, {"fieldValidation": "Strict"}, "application/json"
        )

    def _send(self, method: str, path: str, obj: Object, params: dict[str, str], content_type: str) -> Object:
        answer = self._http.request(
            method, path, json=obj, params=params, headers={"Content-Type": content_type}
        )
        self.warnings += [f"{obj['kind']}: {text}" for text in answer.headers.get_list("Warning")]
        try:
            answer.raise_for_status()
        except httpx.HTTPStatusError as refusal:
            refusal.add_note(f"{obj['kind']} {obj['metadata'].get('name')}: {answer.text}")
            raise
        stored: Object = answer.json()
        return stored
