"""The API server goes away, or forgets: reflectors recover without a busy loop."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane import objects
from tests.endtoend.books import assert_ledger_equals_api, assert_no_drift, granted_twice

if TYPE_CHECKING:
    from tests.endtoend.fleet import Fleet
    from tests.endtoend.replica import Deployed, Replica

pytestmark = pytest.mark.controlplane


@pytest.fixture
def settings() -> dict[str, dict[str, Any]]:
    """The drift check comes often."""
    return {"kube": {"driftSeconds": 2}}


DOWN_S = 8.0
MOST_ATTEMPTS = 20
"""Back-off doubles from half a second to ten: about six while the API server is down, as many while it comes
back, and a list and a watch afterwards. A busy loop makes thousands."""


def by_kind(metrics: dict[str, float], name: str) -> dict[str, float]:
    """One reflector metric by kind."""
    pattern = re.compile(rf'{name}\{{kind="(\w+)"\}}')
    found = {key: pattern.fullmatch(key) for key in metrics}
    return {match[1]: metrics[key] for key, match in found.items() if match is not None}


def attempts(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Lists and watches asked for in between, by kind."""
    name = "berth_reflector_connects_total"
    earlier = by_kind(before, name)
    return {kind: count - earlier[kind] for kind, count in by_kind(after, name).items()}


def test_an_api_server_that_was_away_is_followed_again_without_a_busy_loop(
    fleet: Fleet, leader: Replica, deployed: Deployed
) -> None:
    fleet.template("one")
    token = deployed.reader_token()
    fleet.wait_bound(fleet.create(fleet.pod(f"before-{n}", templates=["one"]) for n in range(5)))
    before = leader.metrics()
    deployed.cluster.stop_apiserver(abruptly=True)
    time.sleep(DOWN_S)  # it has to be away for several attempts
    deployed.cluster.start_apiserver()
    fleet.wait_bound(fleet.create(fleet.pod(f"after-{n}", templates=["one"]) for n in range(5)), seconds=90)
    assert_ledger_equals_api(leader, token, fleet.admin)
    assert_no_drift(leader)

    made = attempts(before, leader.metrics())
    print(f"lists and watches asked for, by kind: {made}")
    assert {"Node", "Pod", "ResourceSlice", "ResourceClaim"} <= made.keys()
    assert all(1 <= count <= MOST_ATTEMPTS for count in made.values())


def test_a_replica_whose_watches_expired_lists_anew(
    fleet: Fleet, leader: Replica, deployed: Deployed
) -> None:
    fleet.template("one")
    token = deployed.reader_token()
    fleet.wait_bound(fleet.create(fleet.pod(f"before-{n}", templates=["one"]) for n in range(5)))
    assert_ledger_equals_api(leader, token, fleet.admin)
    before = leader.metrics()
    with leader.frozen():
        fleet.admin.delete("v1", "Pod", "before-0", fleet.namespace)
        fleet.admin.delete("v1", "Node", "gpu-07")
        fleet.admin.delete("resource.k8s.io/v1", "ResourceSlice", f"gpu-07-{objects.DRIVER}")
        objects.register_gpu_node(fleet.admin, "gpu-20")
        fleet.forget("gpu-20")
        deployed.cluster.expire_history()
    assert_ledger_equals_api(leader, token, fleet.admin, seconds=60)
    fleet.wait_bound(fleet.create(fleet.pod(f"after-{n}", templates=["one"]) for n in range(5)), seconds=90)
    assert_ledger_equals_api(leader, token, fleet.admin)
    assert_no_drift(leader)
    assert not granted_twice(fleet.admin)

    after = leader.metrics()
    expired = by_kind(after, "berth_reflector_expired_total")
    earlier = by_kind(before, "berth_reflector_expired_total")
    print(f"watches that ended with 410: {expired}; asked for: {attempts(before, after)}")
    assert sum(expired.values()) > sum(earlier.values())
    assert all(count <= MOST_ATTEMPTS for count in attempts(before, after).values())
