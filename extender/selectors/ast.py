"""The syntax tree of an expression.

Owns the nodes. The checker writes types, overloads, constants and full names of functions into them; nothing
else changes them.
"""

from __future__ import annotations

from typing import Any

from extender.selectors.types import DYN, Type


class Node:
    """A node: where it starts (character offset), its checked type."""

    __slots__ = ("offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type = DYN


class Literal(Node):
    """A constant; `value` is a run-time value."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name; `constant` holds the value when the checker finds that it names a type."""

    __slots__ = ("constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.constant: Any = None


class Select(Node):
    """operand.field, or has(operand.field) when `test`."""

    __slots__ = ("constant", "field", "operand", "test")

    def __init__(self, offset: int, operand: Node, field: str, *, test: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test = test
        self.constant: Any = None


class Call(Node):
    """function(args) or target.function(args); `overloads` are the candidates that the checker left."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(offset)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: list[Any] = []


class ListNode(Node):
    """[a, ?b]; `optional` holds the places of optional elements."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optional = optional


class MapNode(Node):
    """{k: v, ?k: v} as (key, value, optional)."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[tuple[Node, Node, bool]]) -> None:
        super().__init__(offset)
        self.entries = entries


class StructNode(Node):
    """Name{field: value} as (field, value, optional, offset)."""

    __slots__ = ("fields", "name")

    def __init__(self, offset: int, name: str, fields: list[tuple[str, Node, bool, int]]) -> None:
        super().__init__(offset)
        self.name = name
        self.fields = fields


class Fold(Node):
    """A comprehension: what every macro that loops or binds becomes. `kind`: all, exists, one, or empty."""

    __slots__ = ("accu", "accu_init", "condition", "kind", "range", "result", "step", "var", "var2")

    def __init__(
        self,
        offset: int,
        *,
        range_: Node,
        var: str,
        var2: str,
        accu: str,
        accu_init: Node,
        condition: Node,
        step: Node,
        result: Node,
        kind: str = "",
    ) -> None:
        super().__init__(offset)
        self.kind = kind
        self.range = range_
        self.var = var
        self.var2 = var2
        self.accu = accu
        self.accu_init = accu_init
        self.condition = condition
        self.step = step
        self.result = result


def copy(node: Node) -> Node:  # noqa: PLR0911 - one return for each kind of node
    """A deep copy with nodes of its own, as macros make when they use an operand twice."""
    if isinstance(node, Literal):
        return Literal(node.offset, node.value)
    if isinstance(node, Ident):
        return Ident(node.offset, node.name)
    if isinstance(node, Select):
        return Select(node.offset, copy(node.operand), node.field, test=node.test)
    if isinstance(node, Call):
        target = None if node.target is None else copy(node.target)
        return Call(node.offset, node.function, [copy(a) for a in node.args], target)
    if isinstance(node, ListNode):
        return ListNode(node.offset, [copy(e) for e in node.elements], node.optional)
    if isinstance(node, MapNode):
        return MapNode(node.offset, [(copy(k), copy(v), o) for k, v, o in node.entries])
    if isinstance(node, StructNode):
        return StructNode(node.offset, node.name, [(f, copy(v), o, at) for f, v, o, at in node.fields])
    assert isinstance(node, Fold)
    return Fold(
        node.offset,
        range_=copy(node.range),
        var=node.var,
        var2=node.var2,
        accu=node.accu,
        accu_init=copy(node.accu_init),
        condition=copy(node.condition),
        step=copy(node.step),
        result=copy(node.result),
        kind=node.kind,
    )


def children(node: Node) -> list[Node]:  # noqa: PLR0911 - one return for each kind of node
    """The nodes right below, in source order."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return ([] if node.target is None else [node.target]) + node.args
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, StructNode):
        return [value for _, value, _, _ in node.fields]
    if isinstance(node, Fold):
        return [node.range, node.accu_init, node.condition, node.step, node.result]
    return []
