"""Compares what a replica's ledger holds with what the API server holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.endtoend.fleet import DRA

if TYPE_CHECKING:
    import httpx

    from tests.controlplane.client import ApiClient
    from tests.endtoend.replica import Replica

Holders = dict[str, set[tuple[str, tuple[str, ...]]]]
"""By device, the claims that hold it and the pods that each is reserved for."""


def assert_ledger_equals_api(replica: Replica, token: str, admin: ApiClient, seconds: float = 20.0) -> None:
    """Nodes, devices, their holders and the counted objects; what is on its way is waited for."""
    until = time.monotonic() + seconds
    with replica.http(token) as http:
        while True:
            found = differences(http, replica.metrics(), admin)
            if not found:
                return
            assert time.monotonic() < until, "\n".join(found)
            time.sleep(0.25)


def assert_no_drift(replica: Replica, seconds: float = 30.0) -> None:
    """The replica's own drift check, of all kinds and from now on, finds nothing."""
    since = time.time()
    while True:
        metrics = replica.metrics()
        drifted = {
            name: value
            for name, value in metrics.items()
            if name.startswith("berth_inventory_drift_objects") and value
        }
        if metrics["berth_inventory_drift_check_timestamp_seconds"] > since and not drifted:
            return
        assert time.time() < since + seconds, drifted or "no drift check in time"
        time.sleep(0.25)


def differences(http: httpx.Client, metrics: dict[str, float], admin: ApiClient) -> list[str]:
    """One line for each thing that the ledger and the API server disagree on."""
    nodes = {node["metadata"]["name"] for node in admin.list_all("v1", "Node")}
    known = _known_nodes(http)
    found = [f"node {name}: in one only" for name in sorted(nodes ^ known)]
    stored, held = _stored_holders(admin), Holders()
    for name in sorted(nodes & known):
        held.update(_held_on(http, name))
    published = {
        f"{each['spec']['driver']}/{each['spec']['pool']['name']}/{device['name']}"
        for each in admin.list_all(DRA, "ResourceSlice")
        for device in each["spec"].get("devices") or ()
    }
    found += [f"device {device}: in one only" for device in sorted(published ^ held.keys())]
    found += [
        f"device {device}: API {stored.get(device, set())}, ledger {holders}"
        for device, holders in sorted(held.items())
        if stored.get(device, set()) != holders
    ]
    counts = {
        "Pod": len(admin.list_all("v1", "Pod", fieldSelector="status.phase!=Succeeded,status.phase!=Failed")),
        "ResourceClaim": len(admin.list_all(DRA, "ResourceClaim")),
    }
    for kind, count in counts.items():
        in_ledger = metrics[f'berth_inventory_objects{{kind="{kind}"}}']
        if in_ledger != count:
            found.append(f"{kind}: {count} in the API, {in_ledger:g} in the ledger")
    return found


def granted_twice(admin: ApiClient) -> dict[str, Any]:
    """Devices that several claims hold (no claim of these tests shares one)."""
    return {device: holders for device, holders in _stored_holders(admin).items() if len(holders) > 1}


def _known_nodes(http: httpx.Client) -> set[str]:
    answer = http.get("/api/v1/fleet", params={"limit": 1000}).raise_for_status().json()
    return {row["name"] for row in answer["nodes"]}


def _held_on(http: httpx.Client, node: str) -> Holders:
    view = http.get(f"/api/v1/nodes/{node}").raise_for_status().json()
    return {
        device["id"]: {
            (f"{holder['namespace']}/{holder['claim']}", tuple(sorted(holder["pods"])))
            for holder in device["holders"]
        }
        for device in view["devices"]
    }


def _stored_holders(admin: ApiClient) -> Holders:
    stored: Holders = {}
    for claim in admin.list_all(DRA, "ResourceClaim"):
        status = claim.get("status", {})
        pods = tuple(sorted(consumer["name"] for consumer in status.get("reservedFor") or ()))
        key = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        for result in status.get("allocation", {}).get("devices", {}).get("results") or ():
            device = f"{result['driver']}/{result['pool']}/{result['device']}"
            stored.setdefault(device, set()).add((key, pods))
    return stored
