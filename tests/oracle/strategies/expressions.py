"""Expressions from the grammar: typed ones, and ones that are wrong in type, in name or in syntax.

An expression is a tree, so that a failing one can be shrunk by replacing parts of it with smaller ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tests.oracle.strategies import grammar
from tests.oracle.strategies.draw import chance, pick, weighted
from tests.oracle.strategies.literals import (
    LISTS,
    SCALARS,
    attribute_access,
    device,
    is_lexical,
    lexical,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

Type = tuple[str, ...]
"""A type in prefix order: ("int",), ("list", "int"), ("map", "string", "list", "int")."""

_TOKEN: Final = re.compile(r"%([a-z_KTU][a-zKTU_ ]*)(!?)%|\$(\w):([a-zKTU ]+)")
_HEADS: Final[dict[str, tuple[tuple[int, str], ...]]] = {
    "bool": grammar.BOOL,
    "int": grammar.INT,
    "uint": grammar.UINT,
    "double": grammar.DOUBLE,
    "string": grammar.STRING,
    "bytes": grammar.BYTES,
    "timestamp": grammar.TIMESTAMP,
    "duration": grammar.DURATION,
    "type": grammar.TYPE,
    "quantity": grammar.QUANTITY,
    "semver": grammar.SEMVER,
    "ip": grammar.IP,
    "cidr": grammar.CIDR,
    "url": grammar.URL,
    "format": grammar.FORMAT,
    "list": grammar.LIST_T,
    "map": grammar.MAP_K_T,
    "optional": grammar.OPTIONAL_T,
}
_SIMPLE: Final = (
    (24, "int"), (24, "string"), (10, "bool"), (6, "double"), (4, "uint"), (3, "bytes"), (3, "timestamp"),
    (3, "duration"), (6, "quantity"), (6, "semver"), (2, "ip"), (2, "cidr"), (1, "url"), (1, "null"),
    (1, "type"), (4, "dyn"),
)  # fmt: skip  # many to a line
_LEAF_FORMS: Final = {
    "quantity": "quantity(%quantity_string%)",
    "semver": "semver(%version_string%)",
    "ip": "ip(%ip_string%)",
    "cidr": "cidr(%cidr_string%)",
    "url": "url(%url_string%)",
    "format": "format.%formatname%()",
}
_ARITY: Final = {"list": 1, "optional": 1, "map": 2}


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: its intended type and what it is written of."""

    type: Type
    parts: tuple[str | Node, ...]
    loose: bool = False

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class SelectorInput:
    """One selector case: an expression tree, its text (which may have been damaged), device and environment.

    The environment has the oracle's names: stored, consumableCapacity, listTypeAttributes.
    """

    tree: Node
    text: str
    device: dict[str, Any]
    environment: dict[str, bool] = field(default_factory=lambda: {"stored": True})

    @classmethod
    def of(cls, case: dict[str, Any]) -> SelectorInput:
        """A case that was written down: expression, device and, if not the scheduler's, environment."""
        tree = Node(("bool",), (case["expression"],))
        return cls(tree, case["expression"], case["device"], case.get("environment", {"stored": True}))

    def question(self) -> dict[str, Any]:
        """The case as the oracle is asked."""
        return {"expression": self.text, "device": self.device, "environment": self.environment}


def selector(rng: random.Random) -> SelectorInput:
    """One expression, mostly well typed, and a device for it."""
    wild = pick(rng, (0, 0, 0, 2, 8))
    maker = _Maker(rng, wild)
    goal: Type = ("bool",) if chance(rng, 97) else maker.any_type(1)
    tree = maker.make(goal, pick(rng, (1, 2, 2, 3, 3, 4)), ())
    text = str(tree)
    if chance(rng, 4):
        text = _damaged(rng, text)
    elif chance(rng, 2):
        text = _nested(rng)
    elif chance(rng, 3):
        text = pick(rng, ("  {}\n", "// why\n{}", "{} // because", "\n\n{}", "({})", "\t{}")).format(text)
    return SelectorInput(tree, text, device(rng), _environment(rng))


def _environment(rng: random.Random) -> dict[str, bool]:
    """Mostly the scheduler's; sometimes that of an API server on create, with its gates."""
    if not chance(rng, 6):
        return {"stored": True}
    return {
        "stored": False,
        "consumableCapacity": chance(rng, 50),
        "listTypeAttributes": chance(rng, 50),
    }


class _Maker:
    def __init__(self, rng: random.Random, wild: int) -> None:
        self._rng = rng
        self._wild = wild

    def any_type(self, depth: int) -> Type:
        """A random type; containers while depth lasts."""
        if depth > 0 and chance(self._rng, 22):
            head = pick(self._rng, ("list", "list", "optional", "map"))
            if head == "map":
                return (head, self._key_type(), *self.any_type(depth - 1))
            return (head, *self.any_type(depth - 1))
        return (weighted(self._rng, _SIMPLE),)

    def _key_type(self) -> str:
        return pick(self._rng, ("string", "string", "string", "int", "bool", "uint"))

    def make(self, goal: Type, depth: int, scope: tuple[tuple[str, Type], ...]) -> Node:
        """An expression meant to be of the goal's type."""
        rng = self._rng
        if is_lexical(goal[0]):
            return Node(goal, (lexical(rng, goal[0]),))
        if self._wild and chance(rng, self._wild):
            if chance(rng, 25):
                return self._fill(goal, pick(rng, grammar.BROKEN), depth - 1, scope)
            return replace(self.make(self.any_type(1), depth - 1, scope), type=goal)
        if depth <= 0 or chance(rng, 12):
            return self._leaf(goal, scope)
        if goal[0] in {"dyn", "null"}:
            return self._leaf(goal, scope) if chance(rng, 70) else self._dyn(depth, scope)
        return self._fill(goal, weighted(rng, self._productions(goal)), depth, scope)

    def _dyn(self, depth: int, scope: tuple[tuple[str, Type], ...]) -> Node:
        return replace(self.make(self.any_type(1), depth, scope), type=("dyn",))

    def _productions(self, goal: Type) -> tuple[tuple[int, str], ...]:
        own = _HEADS[goal[0]]
        if goal == ("list", "int"):
            own = grammar.LIST_INT + own
        elif goal == ("list", "string"):
            own = grammar.LIST_STRING + own
        elif goal[:2] == ("map", "int"):
            own = grammar.MAP_INT_T + own
        return grammar.ANYTHING + own if chance(self._rng, 20) else own

    def _leaf(self, goal: Type, scope: tuple[tuple[str, Type], ...]) -> Node:
        rng = self._rng
        fitting = [name for name, kind in scope if goal in {kind, ("dyn",)}]
        if fitting and chance(rng, 65):
            return Node(goal, (pick(rng, fitting),))
        head = goal[0]
        if head == "dyn":
            return self._dyn_leaf()
        published = SCALARS.get(head) or (LISTS.get(goal[1]) if head == "list" else None)
        if published and chance(rng, 35):
            return Node(goal, (attribute_access(rng, pick(rng, published)),))
        if head in _ARITY:
            return self._container(goal, scope)
        if head in _LEAF_FORMS:
            return self._fill(goal, _LEAF_FORMS[head], 0, scope)
        return Node(goal, (lexical(rng, head),))

    def _dyn_leaf(self) -> Node:
        rng = self._rng
        kind = pick(rng, ("string", "int", "bool", "semver"))
        if chance(rng, 75):
            names = (*SCALARS[kind], *LISTS[kind]) if chance(rng, 30) else SCALARS[kind]
            return Node(("dyn",), (attribute_access(rng, pick(rng, names)),))
        kind = pick(rng, ("string", "int", "double", "uint", "bool", "null", "bytes"))
        return Node(("dyn",), (f"dyn({lexical(rng, kind)})",))

    def _container(self, goal: Type, scope: tuple[tuple[str, Type], ...]) -> Node:
        rng = self._rng
        head = goal[0]
        if head == "optional":
            form = "optional.none()" if chance(rng, 40) else "optional.of(%T%)"
        elif head == "list":
            form = pick(rng, ("[%T%]", "[%T%, %T%]", "[%T%, %T%, %T%]", "[]"))
        else:
            form = pick(rng, ("{%K%: %T%}", "{%K%: %T%, %K%: %T%}", "{}"))
        return self._fill(goal, form, 0, scope)

    def _fill(self, goal: Type, form: str, depth: int, scope: tuple[tuple[str, Type], ...]) -> Node:
        bound = self._bound(goal)
        loose = form.startswith("~")
        parts: list[str | Node] = []
        inner = scope
        position = int(loose)
        for token in _TOKEN.finditer(form):
            parts.append(form[position : token.start()])
            position = token.end()
            hole, marked, variable, declared = token.groups()
            if variable:
                name = variable if chance(self._rng, 85) else f"{variable}{len(inner)}"
                inner = (*inner, (name, self._resolved(declared, bound)))
                parts.append(name)
                continue
            child = self.make(self._resolved(hole, bound), depth - 1, inner if marked else scope)
            bracketed = child.loose and not chance(self._rng, 6)
            parts.append(Node(child.type, ("(", child, ")")) if bracketed else child)
        parts.append(form[position:])
        return Node(goal, tuple(part for part in parts if part), loose)

    def _bound(self, goal: Type) -> dict[str, Type]:
        """What T, U and K stand for in one production."""
        bound: dict[str, Type] = {"U": self.any_type(1), "K": (self._key_type(),)}
        if goal[0] == "map":
            bound["K"], bound["T"] = (goal[1],), goal[2:]
        elif goal[0] in _ARITY:
            bound["T"] = goal[1:]
        elif goal == ("bool",) or goal[0] in {"int", "type", "string"}:
            bound["T"] = self.any_type(1)
        else:
            bound["T"] = goal
        return bound

    @staticmethod
    def _resolved(text: str, bound: dict[str, Type]) -> Type:
        kinds: list[str] = []
        for word in text.split():
            kinds.extend(bound.get(word, (word,)))
        return tuple(kinds)


def _nested(rng: random.Random) -> str:
    """An expression so deep that the limit on nesting decides."""
    before, core, after = pick(
        rng,
        (
            ("(", "true", ")"),
            ("!", "true", ""),
            ("-", "1", ""),
            ("[", "1", "]"),
            ("true ? ", "true", " : false"),
            ("true && (", "true", ")"),
            ("f(", "1", ")"),
            ('{"a": ', "1", "}"),
            ("1 + ", "1", ""),
            ("true || ", "true", ""),
            ("", '{"a": 1}', ".a"),
            ("", "[1]", "[0]"),
            ("", '"a"', ".trim()"),
            ("[1].exists(x, ", "true", ")"),
        ),
    )
    depth = pick(rng, (10, 31, 33, 60, 120, 249, 250, 251, 300))
    if before.startswith("{"):
        depth = min(depth, 33)  # upstream needs minutes for deeper maps
    return before * depth + core + after * depth + pick(rng, ("", "", " == 1"))


def _damaged(rng: random.Random, text: str) -> str:
    """The text with one small mistake in it."""
    if not text:
        return text
    at = rng.randrange(len(text))
    kind = rng.randrange(5)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + pick(rng, "()[]{}.,?:'\"\\`&|!=<>+-*/% \n\t@#$;^~\x00é") + text[at:]
    if kind == 2:
        return text[:at]
    if kind == 3:
        return text[at:]
    return text[:at] + text[at:][::-1][:3] + text[at:]


def smaller(node: Node) -> Iterator[Node]:
    """Every tree that is this one with one part replaced by something smaller of the same type."""
    yield from (inner for inner in _descendants(node) if inner.type == node.type)
    yield from (Node(node.type, (text,)) for text in _minimal(node.type) if len(text) < len(str(node)))
    for at, part in enumerate(node.parts):
        if isinstance(part, Node):
            for less in smaller(part):
                yield replace(node, parts=(*node.parts[:at], less, *node.parts[at + 1 :]))


def _descendants(node: Node) -> Iterator[Node]:
    for part in node.parts:
        if isinstance(part, Node):
            yield part
            yield from _descendants(part)


def _minimal(kind: Type) -> tuple[str, ...]:
    minimal = {
        "bool": ("true", "false"),
        "int": ("0", "1"),
        "uint": ("0u",),
        "double": ("0.0",),
        "string": ('""', '"a"'),
        "bytes": ("b''",),
        "dyn": ("dyn(1)",),
        "list": ("[]",),
        "map": ("{}",),
        "optional": ("optional.none()",),
    }
    return minimal.get(kind[0], ())
