"""The verbs against a listening server: every rule of the wire, vetoes, faults."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from extender.model.reason import Reason
from tests.inventory.objects import pod
from tests.server.service import (
    GPU_POD,
    Service,
    args,
    args_with_nodes,
    empty,
    post,
    wire_pod,
)

TRAFFIC = Path(__file__).parent / "data" / "traffic"
NAMES = ["n0", "n1", "n2", "n4"]
LASTING, UNRESOLVABLE = Reason.MEMORY_HELD_OUTSIDE, Reason.DEVICE_LOST


# ---- both forms, any casing, nulls


def test_names_are_answered_with_names(caller: httpx.Client) -> None:
    assert post(caller, "filter", args(GPU_POD, NAMES)) == empty(NodeNames=NAMES)


def test_nodes_are_answered_with_the_nodes_as_they_came(caller: httpx.Client) -> None:
    asked = args_with_nodes(GPU_POD, NAMES)
    reply = post(caller, "filter", asked)
    assert reply == empty(Nodes={"items": asked["Nodes"]["items"]})


def test_a2_the_answer_has_the_form_that_was_asked_or_both(service: Service, caller: httpx.Client) -> None:
    service.refuser.why = {"n1": UNRESOLVABLE}
    both = {**args_with_nodes(GPU_POD, NAMES), "NodeNames": NAMES}
    for asked in (args(GPU_POD, NAMES), args_with_nodes(GPU_POD, NAMES), both):
        reply = post(caller, "filter", asked)
        forms = [
            reply["NodeNames"],
            reply["Nodes"] and [item["metadata"]["name"] for item in reply["Nodes"]["items"]],
        ]
        assert [form is not None for form in forms] == [
            asked["NodeNames"] is not None,
            asked["Nodes"] is not None,
        ]
        assert all(form in (None, ["n0", "n2", "n4"]) for form in forms)


def swapped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key.swapcase(): swapped(inner) for key, inner in value.items()}
    return [swapped(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("form", [args, args_with_nodes])
def test_keys_are_read_in_any_casing(service: Service, caller: httpx.Client, form: Any) -> None:
    service.refuser.why = {"n1": UNRESOLVABLE}
    proper, odd = (
        post(caller, "filter", body) for body in (form(GPU_POD, NAMES), swapped(form(GPU_POD, NAMES)))
    )
    for key in ("NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"):
        assert odd[key] == proper[key]
    assert len(proper["FailedAndUnresolvableNodes"]) == 1


def test_lower_cased_keys_are_read_by_every_verb(service: Service, caller: httpx.Client) -> None:
    lower = {"pod": GPU_POD, "nodenames": NAMES}
    assert post(caller, "filter", lower)["NodeNames"] == NAMES
    assert [host["Host"] for host in post(caller, "prioritize", lower)] == NAMES
    victims = {
        "pod": GPU_POD,
        "nodenametometavictims": {"n1": {"pods": [{"uid": "u"}], "numpdbviolations": 2}},
    }
    assert post(caller, "preempt", victims) == {
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 2}}
    }
    bind = {"podname": "q", "podnamespace": "ns", "poduid": "uid-q", "node": "n1"}
    assert post(caller, "bind", bind) == {"Error": ""}
    assert service.api.posted == [("ns", "q", "uid-q", "n1")]


def test_nulls_are_read_as_absent(caller: httpx.Client) -> None:
    asked = args(GPU_POD, NAMES)
    asked["Pod"] = {
        **GPU_POD,
        "metadata": {**GPU_POD["metadata"], "labels": None, "creationTimestamp": None, "generation": None},
        "spec": {**GPU_POD["spec"], "nodeName": None, "tolerations": None, "overhead": None},
        "status": None,
    }
    assert post(caller, "filter", asked) == empty(NodeNames=NAMES)


def test_no_candidates_are_no_fault(caller: httpx.Client) -> None:
    assert post(caller, "filter", args(GPU_POD, [])) == empty(NodeNames=[])
    assert post(caller, "prioritize", args(GPU_POD, [])) == []


def test_a1_neither_nodes_nor_names_is_an_error_and_the_next_call_works(caller: httpx.Client) -> None:
    reply = post(caller, "filter", {"Pod": GPU_POD})
    assert reply == empty(Error="filter: NodeNames and Nodes are both missing")
    assert post(caller, "prioritize", {"Pod": GPU_POD}) == []
    assert post(caller, "filter", args(GPU_POD, NAMES))["NodeNames"] == NAMES


def test_a3_a_reply_has_no_node_that_was_not_offered(caller: httpx.Client) -> None:
    assert post(caller, "filter", args(GPU_POD, ["n1"]))["NodeNames"] == ["n1"]
    assert [host["Host"] for host in post(caller, "prioritize", args(GPU_POD, ["n1", "new"]))] == [
        "n1",
        "new",
    ]


# ---- whose pods


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param({"scheduler": "other", "claims": ["free"]}, id="another scheduler's"),
        pytest.param({"namespace": "excluded", "claims": ["free"]}, id="in an excluded namespace"),
    ],
)
def test_pods_that_are_not_ours_are_echoed_with_zeros(
    service: Service, caller: httpx.Client, foreign: dict[str, Any]
) -> None:
    service.refuser.why = {"n1": UNRESOLVABLE}
    asked = args(wire_pod(**foreign), NAMES)
    assert post(caller, "filter", asked) == empty(NodeNames=NAMES)
    assert post(caller, "prioritize", asked) == [{"Host": name, "Score": 0} for name in NAMES]
    assert len(service.ledger.in_flight) == 0


def test_a11_a_pod_without_devices_is_never_refused(service: Service, caller: httpx.Client) -> None:
    service.refuser.why = dict.fromkeys(NAMES, UNRESOLVABLE)
    assert post(caller, "filter", args(wire_pod(), NAMES)) == empty(NodeNames=NAMES)


def test_a_pod_without_devices_is_kept_off_accelerator_nodes(caller: httpx.Client) -> None:
    scores = {
        host["Host"]: host["Score"]
        for host in post(caller, "prioritize", args(wire_pod(), ["n0", "n3", "n4"]))
    }
    assert scores["n4"] == 10
    assert max(scores["n0"], scores["n3"]) < 10


# ---- scores


def test_scores_are_integers_from_0_to_10_with_the_fuller_node_first(caller: httpx.Client) -> None:
    reply = caller.post("/extender/prioritize", json=args(GPU_POD, NAMES))
    assert b"." not in reply.content.replace(b"n0.", b"")
    scores = {host["Host"]: host["Score"] for host in reply.json()}
    assert all(type(score) is int and 0 <= score <= 10 for score in scores.values())
    assert scores["n0"] == 10
    assert scores["n1"] == scores["n2"] < 10


def test_a_tie_of_the_best_goes_to_the_first_of_them_or_stays(service: Service, caller: httpx.Client) -> None:
    asked = args(GPU_POD, ["n1", "n2"])
    assert [host["Score"] for host in post(caller, "prioritize", asked)] == [10, 9]
    service.desk.policy = service.desk.policy.model_copy(update={"ties": "random"})
    assert [host["Score"] for host in post(caller, "prioritize", asked)] == [10, 10]


def test_the_devices_of_the_best_node_are_assumed_taken_when_it_is_the_only_best(
    service: Service, caller: httpx.Client
) -> None:
    service.desk.policy = service.desk.policy.model_copy(update={"ties": "random"})
    post(caller, "prioritize", args(GPU_POD, ["n1", "n2"]))
    assert service.ledger.in_flight.assumptions(service.now) == []
    post(caller, "prioritize", args(GPU_POD, NAMES))
    ((uid, assumed),) = service.ledger.in_flight.assumptions(service.now)
    ids = service.ledger.snapshot().topology.table.ids
    assert (uid, assumed.node, [ids[row].device for row in assumed.rows]) == ("uid-q", "n0", ["b"])


def test_a_second_user_of_a_claim_in_flight_is_predicted_the_same_devices(
    service: Service, caller: httpx.Client
) -> None:
    post(caller, "prioritize", args(GPU_POD, NAMES))
    post(caller, "filter", args(wire_pod("second", claims=["free"]), ["n0"]))
    post(caller, "filter", args(wire_pod("third", claims=["free-2"]), ["n0"]))
    shared, other = service.ring.newest(2, "ns/second"), service.ring.newest(2, "ns/third")
    held = {uid: assumed.rows for uid, assumed in service.ledger.in_flight.assumptions(service.now)}
    assert held["uid-second"] == held["uid-q"] != ()
    assert held["uid-third"] == ()
    assert (len(shared), len(other)) == (1, 1)


# ---- refusals


def test_every_refused_node_has_a_reason_and_its_kind_of_map(service: Service, caller: httpx.Client) -> None:
    service.refuser.why = {"n1": LASTING, "n2": UNRESOLVABLE}
    assert post(caller, "filter", args(GPU_POD, NAMES)) == empty(
        NodeNames=["n0", "n4"],
        FailedNodes={"n1": "MemoryHeldOutside: because of memoryheldoutside"},
        FailedAndUnresolvableNodes={"n2": "DeviceLost: because of devicelost"},
    )
    assert service.count("berth_node_refusals_total", verb="filter", reason="DeviceLost") == 1
    assert set(service.ledger.in_flight._offers["uid-q"].nodes) == {"n0", "n4"}


def test_lasting_reasons_leave_no_node_without_an_error(service: Service, caller: httpx.Client) -> None:
    service.refuser.why = dict.fromkeys(NAMES, LASTING)
    reply = post(caller, "filter", args(GPU_POD, NAMES))
    assert (reply["NodeNames"], reply["Error"], len(reply["FailedNodes"])) == ([], "", 4)


def test_shadow_mode_refuses_nothing_and_counts(service: Service, caller: httpx.Client) -> None:
    service.refuser.why = {"n1": UNRESOLVABLE}
    service.switch.only_watching = True
    assert post(caller, "filter", args(GPU_POD, NAMES)) == empty(NodeNames=NAMES)
    assert {host["Score"] for host in post(caller, "prioritize", args(GPU_POD, NAMES))} == {0}
    assert service.count("berth_node_refusals_total", verb="filter", reason="DeviceLost") == 1
    (view,) = service.ring.newest(1)
    assert (view.shadow, view.rejected) == (True, {"DeviceLost": 1})


def test_the_kill_switch_ends_vetoes_and_leaves_scores(service: Service, caller: httpx.Client) -> None:
    service.refuser.why = {"n1": UNRESOLVABLE}
    service.switch.vetoes = False
    assert post(caller, "filter", args(GPU_POD, NAMES)) == empty(NodeNames=NAMES)
    assert max(host["Score"] for host in post(caller, "prioritize", args(GPU_POD, NAMES))) == 10


# ---- preempt


def meta(**nodes: list[str]) -> dict[str, Any]:
    return {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 1} for name, uids in nodes.items()
    }


def test_preempt_returns_the_candidates_that_it_was_given(caller: httpx.Client) -> None:
    given = meta(n1=["u1", "u2"], n2=["u3"])
    asked = {"Pod": GPU_POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": given}
    assert post(caller, "preempt", asked) == {"NodeNameToMetaVictims": given}


def test_preempt_answers_whole_pods_with_their_uids(caller: httpx.Client) -> None:
    victims = {"n1": {"Pods": [wire_pod("v1"), wire_pod("v2")], "NumPDBViolations": 3}}
    asked = {"Pod": GPU_POD, "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}
    assert post(caller, "preempt", asked) == {
        "NodeNameToMetaVictims": {
            "n1": {"Pods": [{"UID": "uid-v1"}, {"UID": "uid-v2"}], "NumPDBViolations": 3}
        }
    }


def test_a12_preempt_drops_nodes_that_we_would_veto(service: Service, caller: httpx.Client) -> None:
    service.refuser.why = {"n1": UNRESOLVABLE, "n2": LASTING}
    given = meta(n0=["u1"], n1=["u2"], n2=["u3"])
    asked = {"Pod": GPU_POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": given}
    assert post(caller, "preempt", asked) == {"NodeNameToMetaVictims": meta(n0=["u1"])}
    service.switch.vetoes = False
    assert post(caller, "preempt", asked) == {"NodeNameToMetaVictims": given}


def test_a12_preempt_takes_candidates_without_victims(caller: httpx.Client) -> None:
    given = meta(n1=[], n2=["u9"])
    asked = {"Pod": GPU_POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": given}
    assert post(caller, "preempt", asked) == {"NodeNameToMetaVictims": given}


# ---- bind


def binding(uid: str = "uid-q", node: str = "n1") -> dict[str, str]:
    return {"PodName": "q", "PodNamespace": "ns", "PodUID": uid, "Node": node}


def test_bind_posts_the_pods_uid_and_node(service: Service, caller: httpx.Client) -> None:
    assert post(caller, "bind", binding()) == {"Error": ""}
    assert service.api.posted == [("ns", "q", "uid-q", "n1")]
    assert service.count("berth_decisions_total", verb="bind", outcome="passed", reason="none") == 1


def test_a4_bind_is_idempotent_by_uid_and_node(service: Service, caller: httpx.Client) -> None:
    service.ledger.upserted("Pod", pod("q", node="n1"))
    assert post(caller, "bind", binding()) == {"Error": ""}
    assert post(caller, "bind", binding(node="n2")) == {"Error": "pod ns/q is already bound to n1"}
    assert service.api.posted == []


def test_a5_a_refused_binding_is_200_with_its_text(service: Service, caller: httpx.Client) -> None:
    service.api.answers["q"] = "409: the pod is being deleted"
    assert post(caller, "bind", binding()) == {"Error": "409: the pod is being deleted"}
    assert service.count("berth_decisions_total", verb="bind", outcome="error", reason="none") == 1


@pytest.mark.parametrize("text", ["500: down", "404: not found", "409: conflict"])
def test_a8_a_failed_bind_leaves_nothing_behind(service: Service, caller: httpx.Client, text: str) -> None:
    before = (service.ledger.snapshot(), len(service.ledger.in_flight))
    service.api.answers["q"] = text
    post(caller, "bind", binding())
    assert (service.ledger.snapshot(), len(service.ledger.in_flight)) == before


def test_a13_members_bound_to_one_node_at_once_all_succeed(service: Service, caller: httpx.Client) -> None:
    def bind(number: int) -> Any:
        body = {**binding(f"uid-{number}"), "PodName": f"member-{number}"}
        return caller.post("/extender/bind", json=body).json()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(bind, range(8))) == [{"Error": ""}] * 8
    assert len(service.api.posted) == 8


def test_a15_a_binding_for_a_pod_that_was_made_again_is_not_posted(
    service: Service, caller: httpx.Client
) -> None:
    service.ledger.upserted("Pod", pod("q", uid="u-new"))
    assert post(caller, "bind", binding(uid="u-old")) == {"Error": "pod ns/q has UID u-new, not PodUID u-old"}
    assert service.api.posted == []


@pytest.mark.parametrize("field", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_a_binding_without_a_field_names_it(service: Service, caller: httpx.Client, field: str) -> None:
    body = {key: value for key, value in binding().items() if key != field}
    assert post(caller, "bind", body) == {"Error": f"{field} is empty"}
    assert service.api.posted == []


# ---- recorded traffic


@pytest.mark.parametrize("path", sorted(TRAFFIC.glob("*.json")), ids=lambda path: path.stem)
def test_recorded_bodies_are_understood(service: Service, caller: httpx.Client, path: Path) -> None:
    record = json.loads(path.read_text("utf-8"))
    verb = record["path"].rsplit("/", 1)[-1]
    asked = record["request"]
    answer = caller.post(
        f"/extender/{verb}", content=json.dumps(asked), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200
    reply = answer.json()
    match verb:
        case "filter":
            assert reply["Error"] == ""
            assert reply["NodeNames"] == asked["NodeNames"]
            items = (asked["Nodes"] or {}).get("items")
            assert (reply["Nodes"] or {}).get("items") == items
        case "prioritize":
            names = asked["NodeNames"] or [item["metadata"]["name"] for item in asked["Nodes"]["items"]]
            assert [host["Host"] for host in reply] == names
        case "bind":
            assert reply == {"Error": ""}
            assert service.api.posted == [
                tuple(asked[k] for k in ("PodNamespace", "PodName", "PodUID", "Node"))
            ]
        case _:
            assert reply == record["reply_sent"]
