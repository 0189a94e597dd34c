"""The type checker (cel-go checker/checker.go): types, references, overloads, and its error texts.

Owns the rules by which an expression is well-typed; writes what it finds into the tree's nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from extender.selectors import types as t
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
from extender.selectors.declarations import Function, Functions, Overload
from extender.selectors.environment import Environment
from extender.selectors.errors import Issue, Source
from extender.selectors.library import functions
from extender.selectors.messages import ENUMS, MESSAGES
from extender.selectors.types import Type, formatted
from extender.selectors.values import TypeValue, UInt, Unnamed

_TYPE_NAMES: Final = {
    "bool": t.BOOL,
    "bytes": t.BYTES,
    "double": t.DOUBLE,
    "google.protobuf.Duration": t.DURATION,
    "int": t.INT,
    "list": t.list_of(t.PARAM_A),
    "map": t.map_of(t.PARAM_A, t.PARAM_B),
    "null_type": t.NULL,
    "string": t.STRING,
    "google.protobuf.Timestamp": t.TIMESTAMP,
    "type": t.TYPE,
    "uint": t.UINT,
    "optional_type": t.optional_of(t.PARAM_V),
    "net.IP": t.IP,
    "net.CIDR": t.CIDR,
}
_LITERALS: Final[dict[type, Type]] = {
    bool: t.BOOL,
    int: t.INT,
    UInt: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
}


def device_fields(environment: Environment) -> dict[str, Type]:
    """The fields of the device and their types."""
    value = t.DYN if environment.dynamic_attributes else t.ANY
    fields = {
        "driver": t.STRING,
        "attributes": t.map_of(t.STRING, t.map_of(t.STRING, value)),
        "capacity": t.map_of(t.STRING, t.map_of(t.STRING, t.QUANTITY)),
    }
    if environment.multi_allocation:
        fields["allowMultipleAllocations"] = t.BOOL
    return fields


def check(source: Source, root: Node, environment: Environment) -> list[Issue]:
    """Check the tree; return the issues, none when it is well-typed."""
    checker = _Checker(source, environment)
    checker.check(root)
    if not checker.issues:
        checker.finish()
    return checker.issues


class _Checker:
    def __init__(self, source: Source, environment: Environment) -> None:
        self._source = source
        self._fields = device_fields(environment)
        self._functions: Functions = functions(environment)
        self._scopes: list[dict[str, Type]] = [{"device": t.DEVICE}]
        self._mapping: t.Mapping = {}
        self._variables = 0
        self._seen: list[Node] = []
        self.issues: list[Issue] = []

    # -- plumbing --------------------------------------------------------------------------------------

    def _report(self, node: Node, message: str) -> None:
        self.issues.append(self._source.issue(node.offset, message))

    def _mismatch(self, node: Node, expected: Type, actual: Type) -> None:
        self._report(node, f"expected type '{formatted(expected)}' but found '{formatted(actual)}'")

    def _undeclared(self, node: Node, name: str) -> None:
        self._report(node, f"undeclared reference to '{name}' (in container '')")

    def _new_variable(self) -> Type:
        self._variables += 1
        return Type("param", f"_var{self._variables - 1}")

    def _substitute(self, type_: Type, *, to_dyn: bool = False) -> Type:
        return t.substitute(self._mapping, type_, to_dyn=to_dyn)

    def _assignable(self, t1: Type, t2: Type) -> bool:
        mapping = t.assignable(self._mapping, t1, t2)
        if mapping is None:
            return False
        self._mapping = mapping
        return True

    def finish(self) -> None:
        """Replace what is left of type parameters by dyn."""
        for node in self._seen:
            node.type = self._substitute(node.type, to_dyn=True)

    # -- names -----------------------------------------------------------------------------------------

    def _lookup(self, name: str) -> tuple[Type, Any] | None:
        """The type of a name and its value if it names a type. A leading dot skips local variables."""
        absolute = name.startswith(".")
        bare = name.removeprefix(".")
        scopes = self._scopes[:1] if absolute else self._scopes[::-1]
        for scope in scopes:
            if bare in scope:
                return scope[bare], None
        described = _TYPE_NAMES.get(bare)
        if described is not None:
            return t.type_of(described), TypeValue(described.name)
        message = MESSAGES.get(bare)
        if message is not None:
            known = message.result.kind == "struct"
            return t.type_of(message.result), TypeValue(bare) if known else Unnamed(bare)
        number = ENUMS.get(bare)
        return None if number is None else (t.INT, number)

    # -- nodes -----------------------------------------------------------------------------------------

    def check(self, node: Node) -> Type:
        """Check a node and all below; return its type."""
        self._seen.append(node)
        if isinstance(node, Literal):
            node.type = _LITERALS[type(node.value)]
        elif isinstance(node, Ident):
            node.type = self._ident(node)
        elif isinstance(node, Select):
            node.type = self._select(node)
        elif isinstance(node, Call):
            node.type = self._call(node)
        elif isinstance(node, ListNode):
            node.type = self._list(node)
        elif isinstance(node, MapNode):
            node.type = self._map(node)
        elif isinstance(node, Fold):
            node.type = self._fold(node)
        elif isinstance(node, StructNode):
            node.type = self._struct(node)
        return node.type

    def _ident(self, node: Ident) -> Type:
        found = self._lookup(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return t.ERROR
        node.constant = found[1]
        return found[0]

    def _select(self, node: Select) -> Type:
        qualified = None if node.test else _qualified_name(node)
        if qualified is not None and qualified.split(".", 1)[0] not in self._scopes[-1]:
            found = self._lookup(qualified)
            if found is not None:
                node.constant = found[1]
                return found[0]
        result = self._field(node, node.operand, node.field, optional=False)
        return t.BOOL if node.test else self._substitute(result)

    def _field(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        operand_type = self._substitute(self.check(operand))
        target, is_optional = t.unwrap_optional(operand_type)
        result = t.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            found = self._fields.get(field) if target == t.DEVICE else None
            if found is not None:
                result = found
            elif target == t.DEVICE:
                self._report(node, f"undefined field '{field}'")
            else:
                self._report(node, f"unexpected failed resolution of '{target.name}'")
        elif target.kind == "param":
            self._assignable(t.DYN, target)
            result = t.DYN
        else:
            if not t.is_dyn(target) and target.kind != "error":
                self._report(node, f"type '{formatted(target)}' does not support field selection")
            result = t.DYN
        return t.optional_of(result) if is_optional or optional else result

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            operand, field = node.args
            assert isinstance(field, Literal)
            self._seen.append(field)
            field.type = t.STRING
            result = self._field(node, operand, field.value, optional=True)
            node.overloads = list(self._functions["_?._"].overloads)
            return self._substitute(result)
        args = [self.check(arg) for arg in node.args]
        if node.target is None:
            function = self._functions.get(node.function.removeprefix("."))
            if function is None:
                self._undeclared(node, node.function)
                return t.ERROR
            node.function = function.name
            return self._resolve(node, function, args, member=False)
        qualified = _qualified_name(node.target)
        if qualified is not None:
            function = self._functions.get(f"{qualified.removeprefix('.')}.{node.function}")
            if function is not None:
                node.function = function.name
                node.target = None
                return self._resolve(node, function, args, member=False)
        target = self.check(node.target)
        function = self._functions.get(node.function)
        if function is None:
            self._undeclared(node, node.function)
            return t.ERROR
        return self._resolve(node, function, [target, *args], member=True)

    def _resolve(self, node: Call, function: Function, args: list[Type], *, member: bool) -> Type:
        if function.name in {"_&&_", "_||_"}:
            return self._logical(node, function, args)
        result: Type | None = None
        node.overloads = []
        for overload in function.overloads:
            if overload.member != member:
                continue
            wanted, returned = self._instance(overload)
            mapping = t.assignable_list(self._mapping, args, wanted)
            if mapping is None:
                continue
            self._mapping = mapping
            node.overloads.append(overload)
            returned = self._substitute(returned)
            if result is None:
                result = returned
            elif not t.is_dyn(result) and returned != result:
                result = t.DYN
        if result is None:
            shown = [self._substitute(arg, to_dyn=True) for arg in args]
            signature = t.signature(shown, member=member)
            self._report(node, f"found no matching overload for '{function.name}' applied to '{signature}'")
            return t.ERROR
        return result

    def _instance(self, overload: Overload) -> tuple[list[Type], Type]:
        """The overload's types with type parameters of their own."""
        fresh: t.Mapping = {}

        def renew(type_: Type) -> Type:
            if type_.kind == "param":
                if type_ not in fresh:
                    fresh[type_] = self._new_variable()
                return fresh[type_]
            if not type_.open:
                return type_
            return Type(type_.kind, type_.name, tuple(renew(p) for p in type_.params))

        return [renew(arg) for arg in overload.args], renew(overload.result)

    def _logical(self, node: Call, function: Function, args: list[Type]) -> Type:
        node.overloads = list(function.overloads)
        failed = False
        for arg, type_ in zip(node.args, args, strict=True):
            if not self._assignable(type_, t.BOOL):
                self._mismatch(arg, t.BOOL, type_)
                failed = True
        return t.ERROR if failed else t.BOOL

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The type of both; dyn when they differ, which `validators` refuses where it is not allowed."""
        if previous is None:
            return current
        if self._assignable(previous, current):
            return t.most_general(previous, current)
        return t.DYN

    def _unwrapped(self, node: Node, type_: Type) -> Type:
        inner, is_optional = t.unwrap_optional(type_)
        if not is_optional and not t.is_dyn(inner):
            self._mismatch(node, t.optional_of(inner), inner)
        return inner

    def _list(self, node: ListNode) -> Type:
        joined: Type | None = None
        for place, element in enumerate(node.elements):
            type_ = self.check(element)
            if place in node.optional:
                type_ = self._unwrapped(element, type_)
            joined = self._join(joined, type_)
        return t.list_of(joined if joined is not None else self._new_variable())

    def _map(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._join(keys, self.check(key))
            type_ = self.check(value)
            if optional:
                type_ = self._unwrapped(value, type_)
            values = self._join(values, type_)
        return t.map_of(keys or self._new_variable(), values or self._new_variable())

    def _struct(self, node: StructNode) -> Type:
        """Messages by name; making a device is well-typed but fails at run time."""
        name = node.name.removeprefix(".")
        message = MESSAGES.get(name)
        found = self._lookup(node.name)
        fields: Mapping[str, Type] | None = None
        result = t.ERROR
        if message is not None:
            fields, result = message.fields, message.result
        elif name == t.DEVICE.name:
            fields, result = self._fields, t.DEVICE
        elif found is None:
            self._undeclared(node, node.name)
            return t.ERROR
        elif found[0].kind != "type":
            self._report(node, f"'{found[0].name}' is not a type")
        else:
            self._report(node, f"'{found[0].params[0].name}' is not a message type")
        for field, value, optional, offset in node.fields:
            actual = self.check(value)
            wanted = t.ERROR if fields is None else fields.get(field)
            if wanted is None:
                self.issues.append(self._source.issue(offset, f"undefined field '{field}'"))
                continue
            if optional:
                actual = self._unwrapped(value, actual)
            if not self._assignable(wanted, actual):
                text = f"expected type of field '{field}' is '{formatted(wanted)}'"
                text += f" but provided type is '{formatted(actual)}'"
                self.issues.append(self._source.issue(offset, text))
        return result

    def _fold(self, node: Fold) -> Type:
        range_type = self._substitute(self.check(node.range))
        accu_type = self.check(node.accu_init)
        self._scopes.append({**self._scopes[-1], node.accu: accu_type})
        first, second = self._loop_types(node, range_type)
        scope = {**self._scopes[-1], node.var: first}
        if node.var2:
            scope[node.var2] = second
        self._scopes.append(scope)
        self.check(node.condition)
        self._assert(node.condition, t.BOOL)
        self.check(node.step)
        self._assert(node.step, accu_type)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return self._substitute(result)

    def _loop_types(self, node: Fold, range_type: Type) -> tuple[Type, Type]:
        if range_type.kind == "list":
            element = range_type.params[0]
            return (t.INT, element) if node.var2 else (element, element)
        if range_type.kind == "map":
            return range_type.params[0], range_type.params[1]
        if range_type.kind in {"dyn", "error", "param"}:
            self._assignable(t.DYN, range_type)
            return t.DYN, t.DYN
        self._report(
            node.range,
            f"expression of type '{formatted(range_type)}' cannot be range of a comprehension"
            " (must be list, map, or dynamic)",
        )
        return t.ERROR, t.ERROR

    def _assert(self, node: Node, type_: Type) -> None:
        if not self._assignable(type_, node.type):
            self._mismatch(node, type_, node.type)


def _qualified_name(node: Node) -> str | None:
    """The dotted name that a chain of selections spells, or None."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.test:
            return None
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))
