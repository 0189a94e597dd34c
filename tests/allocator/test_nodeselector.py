from __future__ import annotations

import pytest

from extender.allocator.nodeselector import (
    Locality,
    Place,
    allocation_selector,
    node_matches,
    selector_errors,
)
from extender.allocator.outcome import Abort
from extender.api.core import Node, NodeSelector, NodeSelectorTerm
from extender.api.meta import ObjectMeta, Requirement

_NODE = Node(metadata=ObjectMeta(name="node-1", labels={"zone": "a", "cores": "8"}))


def _by_labels(*requirements: Requirement) -> NodeSelector:
    return NodeSelector([NodeSelectorTerm(match_expressions=list(requirements))])


def _by_fields(*requirements: Requirement) -> NodeSelector:
    return NodeSelector([NodeSelectorTerm(match_fields=list(requirements))])


def _selected(selector: NodeSelector, node: Node = _NODE) -> bool:
    return node_matches(node, Place("", all_nodes=False, selector=selector))


@pytest.mark.parametrize(
    ("operator", "key", "values", "selected"),
    [
        ("In", "zone", ["a", "b"], True),
        ("In", "zone", ["b"], False),
        ("In", "rack", ["a"], False),
        ("NotIn", "zone", ["a"], False),
        ("NotIn", "rack", ["a"], True),
        ("Exists", "zone", None, True),
        ("Exists", "rack", None, False),
        ("DoesNotExist", "rack", None, True),
        ("DoesNotExist", "zone", None, False),
        ("Gt", "cores", ["7"], True),
        ("Gt", "cores", ["8"], False),
        ("Lt", "cores", ["9"], True),
        ("Lt", "zone", ["9"], False),
        ("Gt", "rack", ["1"], False),
    ],
)
def test_operators_compare_labels(operator: str, key: str, values: list[str] | None, selected: bool) -> None:
    assert _selected(_by_labels(Requirement(key, operator, values))) == selected


def test_fields_know_the_name_alone() -> None:
    assert _selected(_by_fields(Requirement("metadata.name", "In", ["node-1"])))
    assert not _selected(_by_fields(Requirement("metadata.name", "NotIn", ["node-1"])))
    assert not _selected(_by_fields(Requirement("metadata.uid", "In", ["node-1"])))


def test_terms_are_ored_and_requirements_anded() -> None:
    zone, rack = Requirement("zone", "In", ["a"]), Requirement("rack", "Exists")
    assert not _selected(_by_labels(zone, rack))
    both = NodeSelector([NodeSelectorTerm([rack]), NodeSelectorTerm([zone])])
    assert _selected(both)


def test_an_empty_term_selects_nothing() -> None:
    assert not _selected(NodeSelector([NodeSelectorTerm()]))
    assert not _selected(NodeSelector())


def test_a_name_comes_before_all_nodes_and_a_selector() -> None:
    everything = _by_labels(Requirement("zone", "Exists"))
    assert not node_matches(_NODE, Place("node-2", all_nodes=True, selector=everything))
    assert node_matches(_NODE, Place("", all_nodes=True, selector=NodeSelector()))
    assert not node_matches(_NODE, Place("", all_nodes=False, selector=None))


@pytest.mark.parametrize(
    ("requirement", "complaint"),
    [
        (Requirement("zone", "In"), "values set can't be empty"),
        (Requirement("zone", "Exists", ["a"]), "values set must be empty"),
        (Requirement("cores", "Gt", ["1", "2"]), "exactly one value is required"),
        (Requirement("cores", "Gt", ["many"]), 'values[0]: Invalid value: "many"'),
        (Requirement("cores", "Lt", ["9223372036854775808"]), "must be an integer"),
        (Requirement("zone", "Like", ["a"]), 'Unsupported value: "Like"'),
        (Requirement("-zone", "Exists"), "name part must consist of"),
        (Requirement("/zone", "Exists"), "prefix part must be non-empty"),
        (Requirement("a/b/c", "Exists"), "optional DNS subdomain prefix"),
        (Requirement("zone", "In", ["a b"]), "values[0][zone]"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(requirement: Requirement, complaint: str) -> None:
    [error] = selector_errors(_by_labels(requirement))
    assert error.startswith("nodeSelectorTerms[0].matchExpressions[0].")
    assert complaint in error
    with pytest.raises(Abort, match="failed to parse node selector"):
        _selected(_by_labels(requirement))


def test_fields_take_one_value_and_two_operators() -> None:
    assert selector_errors(_by_fields(Requirement("metadata.name", "In", ["a", "b"]))) == [
        'nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["a","b"]: must have one element'
    ]
    [error] = selector_errors(_by_fields(Requirement("metadata.name", "Exists")))
    assert 'supported values: "In", "NotIn"' in error


def test_a_device_of_one_node_pins_the_allocation_to_it() -> None:
    zone = Locality(None, _by_labels(Requirement("zone", "In", ["a"])), binds_to_node=False)
    pinned = _by_fields(Requirement("metadata.name", "In", ["node-1"]))
    local = Locality("node-1", None, binds_to_node=False)
    assert allocation_selector([zone, local], "node-1") == pinned
    assert allocation_selector([zone._replace(binds_to_node=True)], "node-1") == pinned


def test_requirements_of_several_devices_are_merged_once_each() -> None:
    one = Locality(None, _by_labels(Requirement("zone", "In", ["a", "b"])), binds_to_node=False)
    two = Locality(
        None,
        _by_labels(Requirement("zone", "In", ["b", "a"]), Requirement("rack", "Exists")),
        binds_to_node=False,
    )
    assert allocation_selector([one, two], "node-1") == _by_labels(
        Requirement("zone", "In", ["a", "b"]), Requirement("rack", "Exists")
    )


def test_devices_that_are_everywhere_need_no_selector() -> None:
    assert allocation_selector([Locality(None, None, binds_to_node=False)], "node-1") is None


def test_a_selector_of_two_terms_cannot_be_merged() -> None:
    two = NodeSelector([NodeSelectorTerm([Requirement("zone", "Exists")])] * 2)
    with pytest.raises(Abort, match=r"unsupported ResourceSlice\.NodeSelector with 2 terms"):
        allocation_selector([Locality(None, two, binds_to_node=False)], "node-1")
