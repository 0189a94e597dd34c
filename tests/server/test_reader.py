"""What people are shown of the fleet and of a what-if."""

from __future__ import annotations

import pytest

from extender.model.errors import WireError
from extender.model.reason import Reason
from tests.inventory.objects import pod
from tests.server.service import Service, wire_pod


def test_the_fleet_counts_free_and_taken_devices_by_page(service: Service) -> None:
    page = service.reader.fleet("", 2)
    (total,) = page.totals
    assert (page.node_count, [row.name for row in page.nodes], page.next) == (5, ["n0", "n1"], "n1")
    assert (total.total, total.free, total.taken) == (6, 5, 1)


def test_a_node_shows_who_holds_its_devices(service: Service) -> None:
    view = service.reader.node("n0")
    assert view is not None
    assert [(d.id, d.available, [h.claim for h in d.holders]) for d in view.devices] == [
        ("gpu.example.com/n0/a", False, ["held"]),
        ("gpu.example.com/n0/b", True, []),
    ]
    assert service.reader.node("nowhere") is None


def test_explain_says_devices_judges_and_refusals_and_changes_nothing(service: Service) -> None:
    service.refuser.why = {"n1": Reason.DEVICE_LOST}
    view = service.reader.explain(wire_pod(claims=["free"]), ["n0", "n1"], 10)
    best, refused = view.nodes
    assert (best.name, best.score, [p.device for p in best.predicted]) == ("n0", 10, ["gpu.example.com/n0/b"])
    assert {row.judge for row in best.judges} == {"pack", "pool"}
    assert (refused.name, refused.verdict, refused.reason) == ("n1", "unresolvable", "DeviceLost")
    assert (len(service.ring), len(service.ledger.in_flight)) == (0, 0)


def test_explain_finds_a_pod_by_name(service: Service) -> None:
    service.ledger.upserted("Pod", pod("q", claims=["free"], scheduler_name="default-scheduler"))
    view = service.reader.explain_existing("ns", "q", [], 10)
    assert view is not None
    assert (view.candidates, view.passed) == (5, 5)
    assert service.reader.explain_existing("ns", "other", [], 10) is None


@pytest.mark.parametrize(
    ("document", "words"),
    [({"spec": {"containers": "x"}}, "spec.containers"), ({"spec": {}}, "spec.containers")],
)
def test_a_document_that_is_no_pod_is_named(
    service: Service, document: dict[str, object], words: str
) -> None:
    with pytest.raises(WireError, match=words):
        service.reader.explain(document, [], 10)


def test_explain_says_whose_pod_it_is_not(service: Service) -> None:
    view = service.reader.explain(wire_pod(scheduler="other", claims=["free"]), ["n0"], 10)
    assert view.note == "schedulerName 'other' is not ours: every node passes and scores 0"


def test_a_document_is_explained_as_an_api_server_would_store_it(service: Service) -> None:
    document = wire_pod(claims=["free"])
    del document["spec"]["schedulerName"]
    del document["metadata"]["namespace"]
    view = service.reader.explain(document, ["n0"], 10)
    assert (view.pod_namespace, view.note) == ("default", "")
