"""Filter's answer by kind of reason."""

from __future__ import annotations

import pytest

from extender.api.core import Pod
from extender.model import reason as reasons
from extender.model.reason import Kind, Reason
from extender.verbs.desk import Question
from extender.verbs.filter import FilterAnswer, filter_nodes
from extender.verbs.preempt import nodes_to_drop
from tests.inventory.objects import pod
from tests.server.service import Refuser, Service, gpu_fleet

NAMES = ["n0", "n1", "n2"]
PASSING, LASTING, UNRESOLVABLE = Reason.DRIVER_STALE, Reason.MEMORY_HELD_OUTSIDE, Reason.DEVICE_LOST


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    """No reason of today is passing, so one is made so."""
    monkeypatch.setitem(reasons._KINDS, PASSING, Kind.PASSING)
    made = Service()
    gpu_fleet(made)
    return made


def asked(service: Service, member: Pod | None = None) -> Question:
    snapshot = service.ledger.snapshot()
    return service.desk.question(member or pod("q", claims=["free"]), NAMES, snapshot, (), service.now)


def answer(service: Service, *, enforce: bool = True, **why: Reason) -> FilterAnswer:
    service.refuser.why = why
    return filter_nodes(service.desk, asked(service), enforce=enforce)


def test_a_passing_reason_is_a_failed_node_while_others_are_left(service: Service) -> None:
    found = answer(service, n0=PASSING, n1=UNRESOLVABLE)
    assert (found.passed, list(found.failed), list(found.unresolvable), found.error) == (
        ["n2"],
        ["n0"],
        ["n1"],
        "",
    )


def test_with_no_node_left_a_passing_reason_makes_an_error(service: Service) -> None:
    found = answer(service, n0=PASSING, n1=UNRESOLVABLE, n2=LASTING)
    assert (found.passed, found.error) == (
        [],
        "no node now: 1 DeviceLost, 1 DriverStale, 1 MemoryHeldOutside",
    )


def test_with_no_node_left_lasting_reasons_make_no_error(service: Service) -> None:
    assert answer(service, n0=LASTING, n1=UNRESOLVABLE, n2=LASTING).error == ""


def test_without_enforcement_all_pass_and_refusals_are_counted(service: Service) -> None:
    found = answer(service, enforce=False, n0=LASTING, n1=LASTING)
    assert (found.passed, found.failed, found.counts) == (NAMES, {}, {LASTING: 2})


def test_the_first_veto_that_refuses_a_node_gives_its_reason(service: Service) -> None:
    second = Refuser()
    second.why = {"n0": UNRESOLVABLE, "n1": UNRESOLVABLE}
    service.desk.vetoes = [service.refuser, second]
    found = answer(service, n0=LASTING)
    assert (list(found.failed), list(found.unresolvable)) == (["n0"], ["n1"])


def test_preempt_drops_every_node_that_filter_refuses(service: Service) -> None:
    service.refuser.why = {"n0": PASSING, "n1": UNRESOLVABLE}
    assert nodes_to_drop(service.desk, asked(service), enforce=True) == {"n0", "n1"}
    assert nodes_to_drop(service.desk, asked(service), enforce=False) == set()


def test_the_slots_of_an_answer_belong_to_the_names_that_pass(service: Service) -> None:
    found = answer(service, n1=LASTING)
    names = service.ledger.snapshot().topology.names
    assert found.slots is not None
    assert [names[slot] for slot in found.slots.tolist()] == found.passed == ["n0", "n2"]
