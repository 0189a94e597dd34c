"""What a reply leaves behind, and what became of it."""

from __future__ import annotations

from typing import Any

import msgspec
import structlog

from tests.inventory.objects import claim, pod, result
from tests.server.service import Service, args, wire_pod

NAMES = ["n0", "n1", "n2"]


def ask(service: Service, *verbs: str, names: list[str] | None = None) -> None:
    body = msgspec.json.encode(args(wire_pod(claims=["free"]), names or NAMES))
    for verb in verbs:
        getattr(service.verbs, verb)(body)


def bound(service: Service, node: str, device: str, **fields: Any) -> None:
    held = claim("free", [result(node, device)], reserved_for=["uid-q"])
    service.ledger.upserted("Pod", pod("q", claims=["free"], **fields))
    service.ledger.upserted("ResourceClaim", held)
    service.ledger.upserted("Pod", pod("q", claims=["free"], node=node, **fields))


def test_a_pod_bound_to_its_predicted_device_is_right(service: Service) -> None:
    ask(service, "filter", "prioritize")
    bound(service, "n0", "b")
    (view,) = service.ring.newest(1)
    assert (view.outcome, view.node, [p.device for p in view.predicted]) == (
        "right",
        "n0",
        ["gpu.example.com/n0/b"],
    )
    assert service.count("berth_predictions_total", result="right", reason="none") == 1


def test_a_pod_bound_to_another_device_is_wrong(service: Service) -> None:
    ask(service, "filter", "prioritize")
    bound(service, "n1", "b")
    assert service.ring.newest(1)[0].outcome == "wrong"


def test_a_pod_bound_to_a_node_that_was_not_offered_is_unpredicted(service: Service) -> None:
    ask(service, "filter", names=["n0"])
    bound(service, "n1", "a")
    (view,) = service.ring.newest(1)
    assert (view.outcome, view.unpredicted) == ("unpredicted", "NodeNotOffered")


def test_the_binding_may_be_seen_before_the_allocation(service: Service) -> None:
    ask(service, "filter", "prioritize")
    service.ledger.upserted("Pod", pod("q", claims=["free"], node="n0"))
    assert service.ring.newest(1)[0].outcome == "pending"
    held = msgspec.structs.replace(claim("free", [result("n0", "b")], reserved_for=["uid-q"]))
    consumers = [msgspec.structs.replace(one, name="q") for one in held.status.reserved_for or ()]
    status = msgspec.structs.replace(held.status, reserved_for=consumers)
    service.ledger.upserted("ResourceClaim", msgspec.structs.replace(held, status=status))
    assert service.ring.newest(1)[0].outcome == "right"


def test_each_reply_is_one_line_at_debug(service: Service) -> None:
    with structlog.testing.capture_logs() as lines:
        ask(service, "filter", "prioritize")
    filtered, scored = lines
    assert (filtered["event"], filtered["log_level"], filtered["pod"]) == ("decision", "debug", "ns/q")
    assert (filtered["outcome"], filtered["reason"], filtered["passed"]) == ("passed", "none", 3)
    assert (scored["event"], scored["best"], scored["score"]) == ("decision", "n0", 10)
    assert scored["devices"] == ["gpu.example.com/n0/b"]


def test_above_debug_no_reply_is_a_line(service: Service) -> None:
    service.recorder._debug = False
    with structlog.testing.capture_logs() as lines:
        ask(service, "filter", "prioritize")
    assert lines == []


def test_a_record_holds_no_names_of_nodes(service: Service) -> None:
    """5,000 names a record would be half a megabyte."""
    ask(service, "filter")
    forecast = service.ring._records["uid-q"][1]
    cells = [cell.cell_contents for cell in forecast.__closure__ or ()]
    assert not any(isinstance(content, list) for content in cells)


def test_a_pod_without_a_uid_leaves_no_record(service: Service) -> None:
    asked = wire_pod(claims=["free"])
    asked["metadata"]["uid"] = ""
    service.verbs.filter(msgspec.json.encode(args(asked, NAMES)))
    assert (len(service.ring), len(service.ledger.in_flight)) == (0, 0)
