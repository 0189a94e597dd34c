"""Which static types can be relied on at run time.

A type parameter that stands for the element of a dynamic list takes the first type that a function asks of
it, whatever is in the list: `dyn(['a']).reverse().map(x, int(x))` is well-typed. Owns telling such types
from those that a literal, a declaration or a function's own result fixes.
"""

from __future__ import annotations

from extender.selectors import types as t
from extender.selectors.ast import Call, Ident, Literal, Node, Select

_SCALARS = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "null", "duration", "timestamp", "type", "struct"}
)


def sound(node: Node) -> bool:
    """Whether the node's values surely have its static type."""
    while True:
        if isinstance(node, Literal):
            return True
        if isinstance(node, Ident):
            return node.type == t.DEVICE
        if isinstance(node, Select):
            node = node.operand
        elif isinstance(node, Call) and node.function == "_[_]":
            node = node.args[0]
        elif isinstance(node, Call) and len(node.overloads) == 1:
            result = node.overloads[0].result
            return not result.open and not t.is_dyn(result) and not result.params
        else:
            return False


def holds_no_values(node: Node) -> bool:
    """Whether values of the node surely are no lists, maps or optionals."""
    return node.type.kind in _SCALARS and sound(node)
