"""Checks of well-typed trees: literals that can't work, lists and maps of mixed types, format literals.

Owns what cel-go's AST validators (cel/validator.go, ext/formatting.go) refuse.
"""

from __future__ import annotations

from typing import Final

from extender.selectors.ast import Call, ListNode, Literal, MapNode, Node, children
from extender.selectors.errors import CelError, Issue, Source
from extender.selectors.library import instants, regex
from extender.selectors.library.formatting import check_literal
from extender.selectors.types import Type, formatted, unwrap_optional

_EXEMPT: Final = "format"
"""Within a call of this function lists and maps may be mixed."""


def validate(source: Source, root: Node) -> list[Issue]:
    """Return what the validators refuse."""
    issues: list[Issue] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, exempt = stack.pop()
        if isinstance(node, Call):
            _call(source, node, issues)
            exempt = exempt or node.function == _EXEMPT
        elif not exempt and isinstance(node, ListNode):
            _list(source, node, issues)
        elif not exempt and isinstance(node, MapNode):
            _map(source, node, issues)
        stack.extend((child, exempt) for child in children(node))
    return issues


def _call(source: Source, node: Call, issues: list[Issue]) -> None:
    if node.function == "format":
        _format(source, node, issues)
        return
    if node.function not in {"duration", "timestamp", "matches"} or not node.args:
        return
    literal = node.args[0]
    if isinstance(literal, Literal) and not _accepts(node.function, literal.value):
        issues.append(source.issue(literal.offset, f"invalid {node.function} argument"))


def _accepts(function: str, value: object) -> bool:
    if value is None:  # a type-checker's null is a timestamp, too; no conversion takes it
        return False
    try:
        if function == "matches":
            regex.compile_pattern(str(value))
        elif function == "duration":
            instants.parse_duration(value)
        elif isinstance(value, str):
            instants.parse_timestamp(value)
        else:
            instants.timestamp_of_seconds(value)
    except (regex.PatternError, CelError):
        return False
    return True


def _format(source: Source, node: Call, issues: list[Issue]) -> None:
    target = node.target
    if not isinstance(target, Literal) or not isinstance(target.value, str) or len(node.args) != 1:
        return
    args = node.args[0]
    if not isinstance(args, ListNode):
        return
    found = check_literal(target.value, args.elements)
    if found is not None:
        place = node if found[0] is None else found[0]
        issues.append(source.issue(place.offset, found[1]))


def _mixed(source: Source, node: Node, expected: Type, issues: list[Issue], actual: Type) -> None:
    text = f"expected type '{formatted(expected)}' but found '{formatted(actual)}'"
    issues.append(source.issue(node.offset, text))


def _list(source: Source, node: ListNode, issues: list[Issue]) -> None:
    expected: Type | None = None
    for place, element in enumerate(node.elements):
        actual = unwrap_optional(element.type)[0] if place in node.optional else element.type
        if expected is None:
            expected = actual
        elif expected != actual:
            _mixed(source, element, expected, issues, actual)
            return


def _map(source: Source, node: MapNode, issues: list[Issue]) -> None:
    keys: Type | None = None
    values: Type | None = None
    for key, value, optional in node.entries:
        actual = unwrap_optional(value.type)[0] if optional else value.type
        if keys is None or values is None:
            keys, values = key.type, actual
            continue
        if keys != key.type:
            _mixed(source, key, keys, issues, key.type)
        if values != actual:
            _mixed(source, value, values, issues, actual)
