"""Static types of the language: what the checker reasons with.

Owns the types, their text form and assignability (cel-go checker/types.go). Knows nothing of values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, its name (structs, opaque types, type parameters) and its parameters.

    nullable: a wrapper, which takes null too and else is the type that it wraps. open: a type parameter is in
    it. Neither tells types apart.
    """

    kind: str
    name: str
    params: tuple[Type, ...] = ()
    nullable: bool = field(default=False, compare=False)
    open: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "open", self.kind == "param" or any(p.open for p in self.params))

    def __str__(self) -> str:
        return declared(self)


def _simple(kind: str, name: str | None = None) -> Type:
    return Type(kind, name or kind)


DYN: Final = _simple("dyn")
ANY: Final = _simple("any", "google.protobuf.Any")
BOOL: Final = _simple("bool")
INT: Final = _simple("int")
UINT: Final = _simple("uint")
DOUBLE: Final = _simple("double")
STRING: Final = _simple("string")
BYTES: Final = _simple("bytes")
NULL: Final = _simple("null", "null_type")
TIMESTAMP: Final = _simple("timestamp", "google.protobuf.Timestamp")
DURATION: Final = _simple("duration", "google.protobuf.Duration")
ERROR: Final = _simple("error", "!error!")
TYPE: Final = _simple("type")
QUANTITY: Final = _simple("struct", "kubernetes.Quantity")
SEMVER: Final = _simple("struct", "kubernetes.Semver")
URL: Final = _simple("struct", "kubernetes.URL")
FORMAT: Final = _simple("struct", "kubernetes.NamedFormat")
DEVICE: Final = _simple("struct", "kubernetes.DRADevice")
IP: Final = _simple("opaque", "net.IP")
CIDR: Final = _simple("opaque", "net.CIDR")

PARAM_A: Final = Type("param", "A")
PARAM_B: Final = Type("param", "B")
PARAM_K: Final = Type("param", "K")
PARAM_V: Final = Type("param", "V")
PARAM_T: Final = Type("param", "T")


def list_of(element: Type) -> Type:
    """The type list(element)."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """The type map(key, value)."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """The type optional_type(value)."""
    return Type("opaque", "optional_type", (value,))


def type_of(described: Type) -> Type:
    """The type of a type."""
    return Type("type", "type", (described,))


def nullable(wrapped: Type) -> Type:
    """The wrapper of a type."""
    return replace(wrapped, nullable=True)


def is_dyn(t: Type) -> bool:
    """Tell whether the type is known at run time only."""
    return t.kind in {"dyn", "any"}


def is_optional(t: Type) -> bool:
    """Tell whether this is an optional_type."""
    return t.kind == "opaque" and t.name == "optional_type"


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """Return the type within an optional and True, else the type itself and False."""
    return (t.params[0], True) if is_optional(t) else (t, False)


_FORMATTED: Final = {
    "any": "any",
    "duration": "duration",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
}


def formatted(t: Type) -> str:
    """The type as error messages of the checker show it (FormatCELType)."""
    known = _FORMATTED.get(t.kind)
    if known is not None:
        return known
    if not t.params:
        return f"wrapper({t.name})" if t.nullable else t.name
    return f"{t.name}({', '.join(formatted(p) for p in t.params)})"


def declared(t: Type) -> str:
    """The type as Type.String() shows it: timestamps and null by their full names."""
    if not t.params:
        return f"wrapper({t.name})" if t.nullable else t.name
    return f"{t.name}({', '.join(declared(p) for p in t.params)})"


def signature(args: list[Type], *, member: bool) -> str:
    """The argument types of a call as the checker reports them."""
    target = f"{formatted(args[0])}." if member else ""
    rest = args[1:] if member else args
    return f"{target}({', '.join(formatted(a) for a in rest)})"


Mapping = dict[Type, Type]
"""What type parameters stand for."""


def substitute(mapping: Mapping, t: Type, *, to_dyn: bool) -> Type:
    """Replace type parameters by what they stand for; leftover ones by dyn if asked."""
    while t.kind == "param":  # looked up by kind first: hashing a deep type costs its depth
        found = mapping.get(t)
        if found is None:
            return DYN if to_dyn else t
        t = found
    if not t.open:
        return t
    return Type(t.kind, t.name, tuple(substitute(mapping, p, to_dyn=to_dyn) for p in t.params))


def assignable(mapping: Mapping, t1: Type, t2: Type) -> Mapping | None:
    """Return the mapping extended so that t2 may be given for t1, or None."""
    copy = dict(mapping)
    return copy if _assignable(copy, t1, t2) else None


def assignable_list(mapping: Mapping, l1: list[Type], l2: list[Type]) -> Mapping | None:
    """The same for argument lists."""
    if len(l1) != len(l2):
        return None
    copy = dict(mapping)
    for a, b in zip(l1, l2, strict=True):
        if not _assignable(copy, a, b):
            return None
    return copy


def _assignable(mapping: Mapping, t1: Type, t2: Type) -> bool:  # noqa: PLR0911 - one return for each rule upstream
    if t2.kind == "param":
        valid, substituted = _substitution(mapping, t1, t2)
        if valid:
            return True
        if substituted:
            return False
    if t1.kind == "param":
        return _substitution(mapping, t2, t1)[0]
    if is_dyn(t1) or is_dyn(t2) or t1.kind == "error" or t2.kind == "error":
        return True
    if t1.kind == "null":
        return _takes_null(t2)
    if t2.kind == "null":
        return _takes_null(t1)
    if t1.kind == "type":
        return t2.kind == "type"
    if t1.kind in {"opaque", "list", "map"}:
        return (
            t1.kind == t2.kind
            and t1.name == t2.name
            and len(t1.params) == len(t2.params)
            and all(_assignable(mapping, a, b) for a, b in zip(t1.params, t2.params, strict=True))
        )
    return t1 == t2


def _substitution(mapping: Mapping, t1: Type, t2: Type) -> tuple[bool, bool]:
    """May t1 stand for the type parameter t2? Returns that and whether t2 stood for something before."""
    if t1 == t2:
        return True, True
    standing = mapping.get(t2)
    if standing is not None:
        if t1 == standing:
            return True, True
        if _assignable(mapping, t1, standing):
            general = most_general(t1, standing)
            if _absent(mapping, t2, general):
                mapping[t2] = general
            return True, True
        return False, True
    if _absent(mapping, t2, t1):
        mapping[t2] = t1
        return True, False
    return False, False


def _takes_null(t: Type) -> bool:
    return t.nullable or t.kind in {"opaque", "struct", "any", "duration", "timestamp", "null"}


def most_general(t1: Type, t2: Type) -> Type:
    """The one of two assignable types that covers the other."""
    return t1 if _covers(t1, t2) else t2


def _covers(t1: Type, t2: Type) -> bool:
    if is_dyn(t1) or t1.kind == "param":
        return True
    if is_dyn(t2) or t2.kind == "param" or t1.kind != t2.kind:
        return False
    if t1.kind in {"opaque", "list", "map"}:
        return (
            t1.name == t2.name
            and len(t1.params) == len(t2.params)
            and all(_covers(a, b) for a, b in zip(t1.params, t2.params, strict=True))
        )
    return t1.kind == "type" or t1 == t2


def _absent(mapping: Mapping, t: Type, within: Type) -> bool:
    """Tell whether the type parameter t occurs nowhere in the other type (occurs check)."""
    if not within.open:
        return True
    if t == within:
        return False
    if within.kind == "param":
        standing = mapping.get(within)
        return standing is None or _absent(mapping, t, standing)
    return all(_absent(mapping, t, p) for p in within.params)
