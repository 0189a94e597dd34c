"""Functions and their overloads: what the checker resolves and the planner calls.

Owns the shape of a declaration. The functions themselves are in `library`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from extender.selectors.types import Type

Implementation = Callable[..., Any]
"""Takes run-time values, returns one; raises CelError."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    id: upstream's name; costs go by it. member: called as target.f(args), the target is the first argument.
    run: None where the function has one implementation for all its overloads, or the planner has its own.
    variadic: bound upstream as a function of any number of arguments; it stops at the first one in error.
    """

    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool = False
    run: Implementation | None = None
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function by name.

    run: one implementation for all overloads, chosen by the first operand's type, which must be in `operands`
        (None: any). guarded: whether overloads check the types of their arguments at run time.
    """

    name: str
    overloads: tuple[Overload, ...]
    run: Implementation | None = None
    operands: frozenset[type] | None = None
    guarded: bool = True


Functions = Mapping[str, Function]


def merge(*libraries: Iterable[Function]) -> Functions:
    """Put libraries together; functions of one name join their overloads."""
    merged: dict[str, Function] = {}
    for library in libraries:
        for function in library:
            before = merged.get(function.name)
            if before is None:
                merged[function.name] = function
            else:
                merged[function.name] = Function(
                    function.name,
                    before.overloads + function.overloads,
                    before.run or function.run,
                    before.operands or function.operands,
                    before.guarded and function.guarded,
                )
    return MappingProxyType(merged)
