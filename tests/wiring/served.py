"""A cluster behind the scripted API, and the kubeconfig that leads to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from extender.api.core import Pod
from extender.kube.kinds import REQUIRED
from extender.sim.generated import fleet
from tests.kube.scripted_api import Reply, Request, ScriptedApi, answer, never, refuse

OWN = "/api/v1/namespaces/berth-system/pods"
"""Berth's own pods; ours is `own`."""


def fleet_with(*pods: Pod) -> dict[str, list[Any]]:
    objects = fleet(2, plugin_every=0, pending=2)
    return {**objects, "Pod": list(pods)}


def serve(api: ScriptedApi, objects: dict[str, list[Any]]) -> None:
    """Lists and silent watches of every required kind; no streamed lists."""
    for kind in REQUIRED:
        items = msgspec.to_builtins(objects.get(kind.name, []))
        page = {"metadata": {"resourceVersion": "5"}, "items": items}

        async def step(request: Request, reply: Reply, page: dict[str, Any] = page) -> None:
            if "sendInitialEvents" in request.query:
                await refuse(400, "BadRequest")(request, reply)
            elif "watch" in request.query:
                await reply.start()
                await never(request, reply)
            else:
                await reply.send(200, page)

        api.on("GET", kind.path("v1"), step)
    api.on("GET", OWN, answer(200, {"metadata": {}, "items": []}))
    api.on("PATCH", f"{OWN}/own", answer(200, {}))


def kubeconfig(api: ScriptedApi, folder: Path) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "own",
        "clusters": [{"name": "own", "cluster": {"server": api.url}}],
        "users": [{"name": "own", "user": {}}],
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document))
    return path
