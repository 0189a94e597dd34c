"""A tree as text again, for people: parts of an expression are named in explanations.

Owns the text of nodes. Macros show as the loops they stand for, shortened.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from extender.selectors.ast import (
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from extender.selectors.values import UInt, go_float

_BINARY: Final = re.compile(r"_(\S+)_")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def literal(value: Any) -> str:
    """A constant as it would be written."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return "b" + json.dumps(value.decode("latin-1"))
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, UInt):
        return f"{int(value)}u"
    return go_float(value) if isinstance(value, float) else str(value)


def text(node: Node) -> str:  # noqa: PLR0911 - one return for each kind of node
    """The node as text."""
    if isinstance(node, Literal):
        return literal(node.value)
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select):
        inner = f"{text(node.operand)}.{node.field}"
        return f"has({inner})" if node.test else inner
    if isinstance(node, ListNode):
        parts = (("?" if i in node.optional else "") + text(e) for i, e in enumerate(node.elements))
        return f"[{', '.join(parts)}]"
    if isinstance(node, MapNode):
        return "{" + ", ".join(f"{'?' * o}{text(k)}: {text(v)}" for k, v, o in node.entries) + "}"
    if isinstance(node, StructNode):
        return node.name + "{" + ", ".join(f"{'?' * o}{f}: {text(v)}" for f, v, o, _ in node.fields) + "}"
    if isinstance(node, Fold):
        return _fold(node)
    assert isinstance(node, Call)
    return _call(node)


def _fold(node: Fold) -> str:
    names = {"all": "all", "exists": "exists", "one": "exists_one"}
    if node.kind and isinstance(node.step, Call):
        predicate = node.step.args[0 if node.kind == "one" else 1]
        variables = f"{node.var}, {node.var2}" if node.var2 else node.var
        return f"{text(node.range)}.{names[node.kind]}({variables}, {text(predicate)})"
    if node.var == "#unused":
        return f"cel.bind({node.accu}, {text(node.accu_init)}, {text(node.result)})"
    return f"{text(node.range)}.map({node.var}, ...)"


def _call(node: Call) -> str:  # noqa: PLR0911 - one return for each form of call
    args = node.args
    name = node.function
    if name == "_?_:_":
        return f"{_inner(args[0])} ? {_inner(args[1])} : {_inner(args[2])}"
    if name in {"_[_]", "_[?_]"}:
        key = args[1]
        mark = "?" if name == "_[?_]" else ""
        return f"{_inner(args[0])}[{mark}{text(key)}]"
    if name == "_?._":
        return f"{_inner(args[0])}.?{args[1].value if isinstance(args[1], Literal) else text(args[1])}"
    if name in {"!_", "-_"}:
        return f"{name[0]}{_inner(args[0])}"
    if name == "@in":
        return f"{_inner(args[0])} in {_inner(args[1])}"
    operator = _BINARY.fullmatch(name)
    if operator is not None:
        return f"{_inner(args[0])} {operator[1]} {_inner(args[1])}"
    listed = ", ".join(text(a) for a in args)
    return f"{_inner(node.target)}.{name}({listed})" if node.target is not None else f"{name}({listed})"


def _inner(node: Node) -> str:
    shown = text(node)
    operator = isinstance(node, Call) and (
        node.function in {"_?_:_", "@in", "-_"}
        or (_BINARY.fullmatch(node.function) is not None and node.function not in {"_[_]", "_[?_]", "_?._"})
    )
    return f"({shown})" if operator else shown


def is_name(key: str) -> bool:
    """Whether a key can be written behind a dot."""
    return _NAME.fullmatch(key) is not None
