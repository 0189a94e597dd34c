from __future__ import annotations

from dataclasses import replace

from extender.allocator import Failure, Features, NoFit, SliceIndex, gather_pools
from extender.api.core import NodeSelector, NodeSelectorTerm
from extender.api.meta import Requirement
from extender.api.resource import Counter, CounterSet, DeviceCounterConsumption
from tests.allocator.builders import (
    ALL_DEFAULTS,
    DRIVER,
    NODE,
    attempt,
    claim,
    device,
    names,
    request,
    slice_of,
)


def _selector(*requirements: Requirement) -> NodeSelector:
    return NodeSelector([NodeSelectorTerm(match_expressions=list(requirements))])


def test_pools_go_by_driver_and_name_slices_by_name_devices_as_listed() -> None:
    slices = [
        slice_of([device("e")], driver="b.example.com", pool="a"),
        slice_of([device("d"), device("c")], name="slice-2", pool="b", count=2),
        slice_of([device("b")], name="slice-10", pool="b", count=2),
        slice_of([device("a")], driver="a.example.com", pool="z"),
    ]
    pools = gather_pools(NODE, slices, ALL_DEFAULTS)
    assert [candidate.id.device for candidate in pools.candidates] == ["a", "e", "b", "d", "c"]


def test_a_pool_with_binding_conditions_goes_last_as_a_whole() -> None:
    slices = [
        slice_of([device("a"), device("b", binding_conditions=["ready"])], pool="a"),
        slice_of([device("c")], pool="b"),
    ]
    pools = gather_pools(NODE, slices, ALL_DEFAULTS)
    assert [candidate.id.device for candidate in pools.candidates] == ["c", "a", "b"]


def test_the_highest_generation_that_the_node_sees_wins() -> None:
    slices = [
        slice_of([device("old")], name="old", generation=1),
        slice_of([device("new")], name="new", generation=2),
    ]
    assert names(attempt([claim(request())], slices)) == [["new"]]


def test_a_complete_old_pool_is_used_although_another_node_has_a_newer_generation() -> None:
    newer = slice_of([device("b")], name="newer", generation=2, node="node-2")
    assert names(attempt([claim(request())], [slice_of([device("a")]), newer])) == [["a"]]


def test_an_incomplete_old_pool_vanishes_when_another_node_has_a_newer_generation() -> None:
    slices = [
        slice_of([device("a")], count=2),
        slice_of([device("b")], name="newer", generation=2, node="node-2"),
    ]
    pools = gather_pools(NODE, slices, ALL_DEFAULTS)
    assert pools.pools == ()


def test_slices_for_other_nodes_complete_a_pool() -> None:
    slices = [
        slice_of([device("a")], count=2),
        slice_of([device("b")], name="other", count=2, node="node-2"),
    ]
    assert names(attempt([claim(request())], slices)) == [["a"]]


def test_an_incomplete_pool_gives_nothing_and_stops_a_request_for_all() -> None:
    slices = [slice_of([device("a")], count=2)]
    assert isinstance(attempt([claim(request())], slices), NoFit)
    assert attempt([claim(request(mode="All"))], slices) == Failure(
        "fatal",
        f"claim team/claim, request req: asks for all devices, but resource pool {DRIVER}/pool-1"
        " is currently being updated",
    )


def test_a_pool_with_a_device_name_twice_is_invalid() -> None:
    slices = [slice_of([device("a"), device("a")])]
    pools = gather_pools(NODE, slices, ALL_DEFAULTS)
    assert [pool.invalid_reason for pool in pools.pools] == ["duplicate device name a"]
    outcome = attempt([claim(request())], slices)
    assert isinstance(outcome, Failure)
    assert (outcome.scope, outcome.text) == ("node", "invalid resource pools were encountered")


def test_a_pool_whose_devices_take_unknown_counters_is_invalid() -> None:
    taker = device("a", consumes_counters=[DeviceCounterConsumption("set", {"memory": Counter("1")})])
    counters = [CounterSet("set", {"engines": Counter("1")})]
    slices = [slice_of([taker], count=2), slice_of([], name="c", count=2, shared_counters=counters)]
    [pool] = gather_pools(NODE, slices, ALL_DEFAULTS).pools
    assert pool.invalid_reason == "counter memory not found in counter set set"


def test_slices_with_compatibility_groups_are_invisible_while_the_feature_is_off() -> None:
    use = DeviceCounterConsumption("set", {"slots": Counter("1")}, ["mig"])
    counters = [CounterSet("set", {"slots": Counter("1")})]
    slices = [
        slice_of([device("a", consumes_counters=[use])], count=2),
        slice_of([], name="c", count=2, shared_counters=counters),
    ]
    assert [pool.incomplete for pool in gather_pools(NODE, slices, ALL_DEFAULTS).pools] == [True]
    enabled = replace(ALL_DEFAULTS, compatibility_groups=True)
    assert [pool.usable for pool in gather_pools(NODE, slices, enabled).pools] == [True]


def test_devices_choose_their_nodes_where_the_slice_lets_them() -> None:
    devices = [
        device("elsewhere", node_name="node-2"),
        device("zone", node_selector=_selector(Requirement("zone", "In", ["a"]))),
        device("everywhere", all_nodes=True),
    ]
    slices = [slice_of(devices, node=None, per_device_node_selection=True)]
    assert names(attempt([claim(request("req", 2))], slices)) == [["zone", "everywhere"]]
    off = Features()
    assert isinstance(attempt([claim(request())], slices, features=off), NoFit)


def test_a_node_selector_that_cannot_be_parsed_is_fatal() -> None:
    slices = [slice_of([device("a")], node=None, node_selector=_selector(Requirement("zone", "Near", ["a"])))]
    outcome = attempt([claim(request())], slices)
    assert isinstance(outcome, Failure)
    assert outcome.scope == "fatal"
    assert outcome.text.startswith(
        "gather pool information: failed to perform node selection for slice slice-1: failed to parse node"
        " selector &NodeSelector{"
    )
    assert outcome.text.endswith(
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near": supported values:'
        ' "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    )


def test_an_index_and_a_list_of_slices_give_the_same_pools() -> None:
    slices = [
        slice_of([device("b")], name="shared", pool="p", node=None, all_nodes=True, count=2),
        slice_of([device("a")], name="local", pool="p", count=2),
        slice_of([device("c")], name="other", node="node-2"),
    ]
    by_list = gather_pools(NODE, slices, ALL_DEFAULTS)
    by_index = gather_pools(NODE, SliceIndex(slices), ALL_DEFAULTS)
    assert [c.id for c in by_list.candidates] == [c.id for c in by_index.candidates]
    assert [c.id.device for c in by_list.candidates] == ["a", "b"]
