"""Macros: calls that become other trees while parsing.

Owns the expansions of cel-go's standard macros, optional types, two-variable comprehensions, cel.bind and
sortBy, and which of them an environment has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from extender.selectors.ast import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select, children, copy
from extender.selectors.environment import Environment

_ACCU: Final = "@result"
_UNUSED: Final = "#unused"
_MAX_COPIED: Final = 50_000
"""Nodes that copying macros may make; nested optMap would double them at each step without end."""

Expansion = Callable[[int, Node | None, list[Node]], Node | None]


class MacroError(Exception):
    """A macro can't be expanded; `offset` is the place of the argument at fault."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


class Macros:
    """The macros of an environment."""

    def __init__(self, environment: Environment) -> None:
        self._copied = 0
        self._globals: dict[tuple[str, int], Expansion] = {("has", 1): _has}
        self._members: dict[tuple[str, int], Expansion] = {
            ("all", 2): _all,
            ("exists", 2): _exists,
            ("exists_one", 2): _exists_one,
            ("map", 2): _map,
            ("map", 3): _map,
            ("filter", 2): _filter,
            ("bind", 3): _bind,
            ("optMap", 2): self._opt_map,
            ("optFlatMap", 2): self._opt_flat_map,
            ("all", 3): _all2,
            ("exists", 3): _exists2,
            ("exists_one", 3): _exists_one2,
            ("existsOne", 3): _exists_one2,
            ("transformList", 3): _transform_list,
            ("transformList", 4): _transform_list,
            ("transformMap", 3): _transform_map,
            ("transformMap", 4): _transform_map,
            ("transformMapEntry", 3): _transform_map_entry,
            ("transformMapEntry", 4): _transform_map_entry,
        }
        if environment.extended_lists:
            self._members["sortBy", 2] = _sort_by

    def expand(self, offset: int, function: str, target: Node | None, args: list[Node]) -> Node | None:
        """Return what the call becomes, None when it is no macro; raise MacroError."""
        table = self._globals if target is None else self._members
        expansion = table.get((function, len(args)))
        return None if expansion is None else expansion(offset, target, args)

    def _copy(self, node: Node) -> Node:
        self._copied += _size(node, _MAX_COPIED - self._copied)
        if self._copied >= _MAX_COPIED:
            raise MacroError(node.offset, f"macros expand to more than {_MAX_COPIED} nodes")
        return copy(node)

    def _optional(self, offset: int, target: Node, args: list[Node], name: str) -> Node:
        if not isinstance(args[0], Ident):
            raise MacroError(args[0].offset, f"{name}() variable name must be a simple identifier")
        return Fold(
            offset,
            range_=ListNode(offset, []),
            var=_UNUSED,
            var2="",
            accu=args[0].name,
            accu_init=Call(offset, "value", [], self._copy(target)),
            condition=Literal(offset, False),  # noqa: FBT003 - a literal of the language
            step=Ident(offset, args[0].name),
            result=args[1],
        )

    def _opt_map(self, offset: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        fold = self._optional(offset, target, args, "optMap")
        return _if_present(offset, target, Call(offset, "optional.of", [fold]))

    def _opt_flat_map(self, offset: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        return _if_present(offset, target, self._optional(offset, target, args, "optFlatMap"))


def _size(node: Node, limit: int) -> int:
    count = 0
    stack = [node]
    while stack and count < limit:
        count += 1
        stack.extend(children(stack.pop()))
    return count


def _if_present(offset: int, target: Node, then: Node) -> Node:
    return Call(
        offset, "_?_:_", [Call(offset, "hasValue", [], target), then, Call(offset, "optional.none", [])]
    )


def _variable(arg: Node, message: str) -> str:
    if not isinstance(arg, Ident):
        raise MacroError(arg.offset, message)
    if arg.name in {_ACCU, "__result__"}:
        raise MacroError(arg.offset, "iteration variable overwrites accumulator variable")
    return arg.name


def _literal(offset: int, value: object) -> Node:
    return Literal(offset, value)


def _has(_offset: int, _target: Node | None, args: list[Node]) -> Node:
    chosen = args[0]
    if not isinstance(chosen, Select):
        raise MacroError(chosen.offset, "invalid argument to has() macro")
    return Select(_offset, chosen.operand, chosen.field, test=True)


def _fold(
    offset: int,
    target: Node | None,
    names: tuple[str, str],
    parts: tuple[Node, Node, Node, Node],
    kind: str = "",
) -> Node:
    assert target is not None
    init, condition, step, result = parts
    return Fold(
        offset,
        range_=target,
        var=names[0],
        var2=names[1],
        accu=_ACCU,
        accu_init=init,
        condition=condition,
        step=step,
        result=result,
        kind=kind,
    )


def _all_parts(at: int, predicate: Node) -> tuple[Node, Node, Node, Node]:
    return (
        _literal(at, True),  # noqa: FBT003 - a literal of the language
        Call(at, "@not_strictly_false", [Ident(at, _ACCU)]),
        Call(at, "_&&_", [Ident(at, _ACCU), predicate]),
        Ident(at, _ACCU),
    )


def _exists_parts(at: int, predicate: Node) -> tuple[Node, Node, Node, Node]:
    return (
        _literal(at, False),  # noqa: FBT003 - a literal of the language
        Call(at, "@not_strictly_false", [Call(at, "!_", [Ident(at, _ACCU)])]),
        Call(at, "_||_", [Ident(at, _ACCU), predicate]),
        Ident(at, _ACCU),
    )


def _one_parts(at: int, predicate: Node) -> tuple[Node, Node, Node, Node]:
    plus = Call(at, "_+_", [Ident(at, _ACCU), _literal(at, 1)])
    return (
        _literal(at, 0),
        _literal(at, True),  # noqa: FBT003 - a literal of the language
        Call(at, "_?_:_", [predicate, plus, Ident(at, _ACCU)]),
        Call(at, "_==_", [Ident(at, _ACCU), _literal(at, 1)]),
    )


def _collect_parts(at: int, init: Node, step: Node, only_if: Node | None) -> tuple[Node, Node, Node, Node]:
    if only_if is not None:
        step = Call(at, "_?_:_", [only_if, step, Ident(at, _ACCU)])
    return init, _literal(at, True), step, Ident(at, _ACCU)  # noqa: FBT003 - a literal of the language


_SIMPLE: Final = "argument must be a simple name"
_IDENTIFIER: Final = "argument is not an identifier"


def _all(at: int, target: Node | None, args: list[Node]) -> Node:
    return _fold(at, target, (_variable(args[0], _SIMPLE), ""), _all_parts(at, args[1]), "all")


def _exists(at: int, target: Node | None, args: list[Node]) -> Node:
    return _fold(at, target, (_variable(args[0], _SIMPLE), ""), _exists_parts(at, args[1]), "exists")


def _exists_one(at: int, target: Node | None, args: list[Node]) -> Node:
    return _fold(at, target, (_variable(args[0], _SIMPLE), ""), _one_parts(at, args[1]), "one")


def _append(at: int, element: Node) -> Node:
    return Call(at, "_+_", [Ident(at, _ACCU), ListNode(at, [element])])


def _map(at: int, target: Node | None, args: list[Node]) -> Node:
    name = _variable(args[0], _IDENTIFIER)
    only_if = args[1] if len(args) == 3 else None
    parts = _collect_parts(at, ListNode(at, []), _append(at, args[-1]), only_if)
    return _fold(at, target, (name, ""), parts)


def _filter(at: int, target: Node | None, args: list[Node]) -> Node:
    name = _variable(args[0], _IDENTIFIER)
    parts = _collect_parts(at, ListNode(at, []), _append(at, Ident(args[0].offset, name)), args[1])
    return _fold(at, target, (name, ""), parts)


def _bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].offset, "cel.bind() variable names must be simple identifiers")
    return Fold(
        at,
        range_=ListNode(at, []),
        var=_UNUSED,
        var2="",
        accu=args[0].name,
        accu_init=args[1],
        condition=Literal(at, False),  # noqa: FBT003 - a literal of the language
        step=Ident(at, args[0].name),
        result=args[2],
    )


def _variables(args: list[Node]) -> tuple[str, str]:
    for arg in args[:2]:
        if not isinstance(arg, Ident):
            raise MacroError(arg.offset, _SIMPLE)
    first, second = args[0], args[1]
    assert isinstance(first, Ident)
    assert isinstance(second, Ident)
    if first.name == second.name:
        raise MacroError(second.offset, f"duplicate variable name: {first.name}")
    return _variable(first, _SIMPLE), _variable(second, _SIMPLE)


def _all2(at: int, target: Node | None, args: list[Node]) -> Node:
    return _fold(at, target, _variables(args), _all_parts(at, args[2]), "all")


def _exists2(at: int, target: Node | None, args: list[Node]) -> Node:
    return _fold(at, target, _variables(args), _exists_parts(at, args[2]), "exists")


def _exists_one2(at: int, target: Node | None, args: list[Node]) -> Node:
    return _fold(at, target, _variables(args), _one_parts(at, args[2]), "one")


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node:
    names = _variables(args)
    only_if = args[2] if len(args) == 4 else None
    return _fold(at, target, names, _collect_parts(at, ListNode(at, []), _append(at, args[-1]), only_if))


def _transform_map(at: int, target: Node | None, args: list[Node]) -> Node:
    names = _variables(args)
    only_if = args[2] if len(args) == 4 else None
    step = Call(at, "cel.@mapInsert", [Ident(at, _ACCU), Ident(at, names[0]), args[-1]])
    return _fold(at, target, names, _collect_parts(at, MapNode(at, []), step, only_if))


def _transform_map_entry(at: int, target: Node | None, args: list[Node]) -> Node:
    names = _variables(args)
    only_if = args[2] if len(args) == 4 else None
    step = Call(at, "cel.@mapInsert", [Ident(at, _ACCU), args[-1]])
    return _fold(at, target, names, _collect_parts(at, MapNode(at, []), step, only_if))


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    if isinstance(target, (Literal, MapNode)):
        raise MacroError(
            target.offset,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    name = "@__sortBy_input__"
    keys = _map(at, Ident(at, name), args)
    return Fold(
        at,
        range_=ListNode(at, []),
        var=_UNUSED,
        var2="",
        accu=name,
        accu_init=target,
        condition=Literal(at, False),  # noqa: FBT003 - a literal of the language
        step=Ident(at, name),
        result=Call(at, "@sortByAssociatedKeys", [keys], Ident(at, name)),
    )
