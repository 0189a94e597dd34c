"""The fields of kubescheduler.config.k8s.io/v1 as kube-scheduler 1.37 knows them, and their types.

kube-scheduler decodes strictly and by exact case: a field it does not know ends its start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from extender.cli.schedulerconfig.findings import Findings
from extender.model.document import Path
from extender.model.schema import unknown

Scalar = Literal["text", "true or false", "integer", "number", "duration", "anything"]
Shape = Scalar | list["Shape"] | Mapping[str, "Shape"]

_PLUGIN: Shape = {"name": "text", "weight": "integer"}
_PLUGIN_SET: Shape = {"enabled": [_PLUGIN], "disabled": [_PLUGIN]}
_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "multiPoint",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)

EXTENDER: Shape = {
    "urlPrefix": "text",
    "filterVerb": "text",
    "preemptVerb": "text",
    "prioritizeVerb": "text",
    "weight": "integer",
    "bindVerb": "text",
    "enableHTTPS": "true or false",
    "tlsConfig": {
        "insecure": "true or false",
        "serverName": "text",
        "certFile": "text",
        "keyFile": "text",
        "caFile": "text",
        "certData": "text",
        "keyData": "text",
        "caData": "text",
    },
    "httpTimeout": "duration",
    "nodeCacheCapable": "true or false",
    "managedResources": [{"name": "text", "ignoredByScheduler": "true or false"}],
    "ignorable": "true or false",
}

CONFIGURATION: Shape = {
    "apiVersion": "text",
    "kind": "text",
    "parallelism": "integer",
    "leaderElection": {
        "leaderElect": "true or false",
        "leaseDuration": "duration",
        "renewDeadline": "duration",
        "retryPeriod": "duration",
        "resourceLock": "text",
        "resourceName": "text",
        "resourceNamespace": "text",
    },
    "clientConnection": {
        "kubeconfig": "text",
        "acceptContentTypes": "text",
        "contentType": "text",
        "qps": "number",
        "burst": "integer",
    },
    "enableProfiling": "true or false",
    "enableContentionProfiling": "true or false",
    "percentageOfNodesToScore": "integer",
    "podInitialBackoffSeconds": "integer",
    "podMaxBackoffSeconds": "integer",
    "profiles": [
        {
            "schedulerName": "text",
            "percentageOfNodesToScore": "integer",
            "plugins": dict.fromkeys(_POINTS, _PLUGIN_SET),
            "pluginConfig": [{"name": "text", "args": "anything"}],
        }
    ],
    "extenders": [EXTENDER],
    "delayCacheUntilActive": "true or false",
}

_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration_seconds(text: str) -> float | None:
    """A Go duration ("1m30s") in seconds, None if it is none."""
    unsigned = text.lstrip("+-")
    if len(text) - len(unsigned) > 1:
        return None
    if unsigned == "0":
        return 0.0
    parts = list(_DURATION_PART.finditer(unsigned))
    if not parts or "".join(part[0] for part in parts) != unsigned:
        return None
    seconds = sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
    return -seconds if text.startswith("-") else seconds


def check_fields(value: Any, shape: Shape, path: Path, findings: Findings) -> None:
    """Report every field that kube-scheduler does not know, and every value that it can't decode."""
    if value is None:
        return
    if isinstance(shape, str):
        _check_scalar(value, shape, path, findings)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            _wrong(path, "a list", findings)
            return
        for index, item in enumerate(value):
            check_fields(item, shape[0], (*path, index), findings)
    elif not isinstance(value, dict):
        _wrong(path, "a mapping", findings)
    else:
        for name, inner in value.items():
            if name not in shape:
                happens = f"{unknown(name, list(shape))}; kube-scheduler refuses the file and does not start"
                findings.add("error", (*path, name), happens, "remove it or correct its spelling")
            else:
                check_fields(inner, shape[name], (*path, name), findings)


def _check_scalar(value: Any, shape: str, path: Path, findings: Findings) -> None:
    if shape == "duration":
        if not isinstance(value, str) or duration_seconds(value) is None:
            _wrong(path, 'a duration with its unit ("10s")', findings)
        return
    fits = {
        "text": isinstance(value, str),
        "true or false": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "anything": True,
    }
    if not fits[shape]:
        _wrong(path, shape, findings)


def _wrong(path: Path, expected: str, findings: Findings) -> None:
    findings.add(
        "error",
        path,
        "has a wrong type; kube-scheduler refuses the file and does not start",
        f"write {expected}",
    )
