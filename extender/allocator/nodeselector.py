"""Node selectors: parsing, matching a node, and the selector of an allocation.

Owns the rules of component-helpers nodeaffinity (terms are ORed, an empty term matches nothing, fields In and
NotIn with one value) and how the allocator merges selectors of devices. Never: affinity of pods.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from extender.api.core import Node, NodeSelector, NodeSelectorTerm
from extender.api.meta import Requirement

from .outcome import Abort

LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS: Final = ("In", "NotIn")
_NAME_FIELD: Final = "metadata.name"
_INT64: Final = range(-(1 << 63), 1 << 63)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_LABEL: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    f" character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
    " start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345',"
    f" regex used for validation is '({_LABEL})?')"
)
_DNS: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_DNS_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    " start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    f" '{_DNS}')"
)
_LABEL_NAME: Final = re.compile(_LABEL)
_LABEL_VALUE: Final = re.compile(f"({_LABEL})?")
_SUBDOMAIN: Final = re.compile(_DNS)


class Place(NamedTuple):
    """Where something is available: at one node, everywhere, or where a selector says, in this order."""

    node_name: str
    all_nodes: bool
    selector: NodeSelector | None


def node_matches(node: Node, place: Place) -> bool:
    """Tell whether a place includes the node; raise Abort for a selector that can't be parsed."""
    if place.node_name:
        return node.metadata.name == place.node_name
    if place.all_nodes:
        return True
    if place.selector is None:
        return False
    errors = selector_errors(place.selector)
    if errors:
        raise Abort(f"failed to parse node selector {_go_text(place.selector)}: {_aggregate(errors)}")
    return any(_term_matches(node, term) for term in place.selector.node_selector_terms or ())


def _term_matches(node: Node, term: NodeSelectorTerm) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels or {}
    if not all(_label_matches(labels.get(want.key), want) for want in term.match_expressions or ()):
        return False
    if not node.metadata.name:
        return True  # upstream: without any field there is nothing to compare
    return all(
        ((node.metadata.name if want.key == _NAME_FIELD else "") == (want.values or [""])[0])
        == (want.operator == "In")
        for want in term.match_fields or ()
    )


def _label_matches(value: str | None, want: Requirement) -> bool:
    match want.operator:
        case "In":
            return value is not None and value in (want.values or ())
        case "NotIn":
            return value is None or value not in (want.values or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            have, limit = _int64(value), _int64(want.values[0] if want.values else None)
            if have is None or limit is None:
                return False
            return have > limit if want.operator == "Gt" else have < limit


def _int64(text: str | None) -> int | None:
    if text is None or not _INTEGER.fullmatch(text) or len(text) > 4_000:
        return None
    value = int(text)
    return value if value in _INT64 else None


# -- parse errors ------------------------------------------------------------------------------------------


def selector_errors(selector: NodeSelector) -> list[str]:
    """Return what is wrong with a selector, field by field, in upstream's words; empty when it is valid."""
    errors: list[str] = []
    for index, term in enumerate(selector.node_selector_terms or ()):
        path = f"nodeSelectorTerms[{index}]"
        for position, want in enumerate(term.match_expressions or ()):
            _append(errors, _label_errors(want, f"{path}.matchExpressions[{position}]"))
        for position, want in enumerate(term.match_fields or ()):
            _append(errors, _field_errors(want, f"{path}.matchFields[{position}]"))
    return errors


def _append(errors: list[str], found: Sequence[str]) -> None:
    errors.extend(error for error in found if error not in errors)


def _label_errors(want: Requirement, path: str) -> list[str]:
    values = want.values or []
    if want.operator not in LABEL_OPERATORS:
        return [_unsupported(f"{path}.operator", want.operator, LABEL_OPERATORS)]
    errors = []
    if complaint := _key_complaint(want.key):
        errors.append(f"{path}.key: Invalid value: {json.dumps(want.key, ensure_ascii=False)}: {complaint}")
    where = f"{path}.values"
    match want.operator:
        case "In" | "NotIn" if not values:
            errors.append(
                _invalid(where, want.values, "for 'in', 'notin' operators, values set can't be empty")
            )
        case "Exists" | "DoesNotExist" if values:
            errors.append(_invalid(where, values, "values set must be empty for exists and does not exist"))
        case "Gt" | "Lt":
            if len(values) != 1:
                errors.append(
                    _invalid(where, want.values, "for 'Gt', 'Lt' operators, exactly one value is required")
                )
            errors.extend(
                _invalid(f"{where}[{i}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
                for i, value in enumerate(values)
                if _int64(value) is None
            )
    for i, value in enumerate(values):
        complaints = []
        if len(value.encode()) > 63:
            complaints.append("must be no more than 63 bytes")
        if not _LABEL_VALUE.fullmatch(value):
            complaints.append(_VALUE_RULE)
        if complaints:
            errors.append(_invalid(f"{where}[{i}][{want.key}]", value, "; ".join(complaints)))
    return errors


def _key_complaint(key: str) -> str:
    parts = key.split("/")
    if len(parts) > 2:
        example = "(e.g. 'example.com/MyName')"
        return f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' {example}"
    complaints = []
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            complaints.append("prefix part must be non-empty")
        else:
            if len(parts[0].encode()) > 253:
                complaints.append("prefix part must be no more than 253 bytes")
            if not _SUBDOMAIN.fullmatch(parts[0]):
                complaints.append(f"prefix part {_DNS_RULE}")
    if not name:
        complaints.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        complaints.append("name part must be no more than 63 bytes")
    if not _LABEL_NAME.fullmatch(name):
        complaints.append(f"name part {_NAME_RULE}")
    return "; ".join(complaints)


def _field_errors(want: Requirement, path: str) -> list[str]:
    if want.operator not in FIELD_OPERATORS:
        return [_unsupported(f"{path}.operator", want.operator, FIELD_OPERATORS)]
    if len(want.values or ()) != 1:
        return [_invalid(f"{path}.values", want.values, "must have one element")]
    return []


def _invalid(path: str, value: object, detail: str) -> str:
    return f"{path}: Invalid value: {json.dumps(value, separators=(',', ':'))}: {detail}"


def _unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    quoted = ", ".join(json.dumps(name) for name in supported)
    return f"{path}: Unsupported value: {json.dumps(value, ensure_ascii=False)}: supported values: {quoted}"


def _aggregate(errors: Sequence[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _go_text(selector: NodeSelector) -> str:
    """The selector as upstream prints it in errors."""

    def requirements(wanted: Iterable[Requirement] | None) -> str:
        return "".join(
            f"NodeSelectorRequirement{{Key:{want.key},Operator:{want.operator},"
            f"Values:[{' '.join(want.values or ())}],}},"
            for want in wanted or ()
        )

    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:[]NodeSelectorRequirement{{{requirements(term.match_expressions)}}},"
        f"MatchFields:[]NodeSelectorRequirement{{{requirements(term.match_fields)}}},}},"
        for term in selector.node_selector_terms or ()
    )
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


# -- the selector of an allocation ---------------------------------------------------------------------------


class Locality(NamedTuple):
    """How one allocated device limits where its claim can be used."""

    node_name: str | None
    selector: NodeSelector | None
    binds_to_node: bool


def allocation_selector(localities: Iterable[Locality], node_name: str) -> NodeSelector | None:
    """Return the node selector of an allocation, None when it is available everywhere.

    One device that is local to a node (or binds to it) pins the allocation to that node; else the
    requirements of all devices are merged into one term. Raise Abort for a device selector of several terms.
    """
    expressions: list[Requirement] = []
    match_fields: list[Requirement] = []
    for locality in localities:
        if locality.node_name is not None or locality.binds_to_node:
            name = Requirement(key=_NAME_FIELD, operator="In", values=[node_name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name])])
        terms = (locality.selector.node_selector_terms or ()) if locality.selector else ()
        if len(terms) > 1:
            raise Abort(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(term.match_fields or (), match_fields)
            _add_new(term.match_expressions or (), expressions)
    if not match_fields and not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=expressions or None, match_fields=match_fields or None)
    return NodeSelector(node_selector_terms=[term])


def _add_new(wanted: Iterable[Requirement], known: list[Requirement]) -> None:
    for want in wanted:
        values = set(want.values or ())
        if not any(
            have.key == want.key and have.operator == want.operator and set(have.values or ()) == values
            for have in known
        ):
            known.append(want)
