"""What a selector's verdict can depend on, found in its tree.

Owns the analysis and the keys by which verdicts are cached. When it can't tell, it says `everything`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.selectors.ast import Call, Fold, Ident, Literal, Node, Select, children

DRIVER: Final = "driver"
MULTI: Final = "allowMultipleAllocations"
FAULTS: Final = "faults"
EVERYTHING: Final = "everything"


@dataclass(frozen=True, slots=True)
class Reads:
    """All that a verdict depends on. Names are fully qualified: domain/id; domains are bare.

    attributes, capacity: single values, their absence included.
    attribute_ids, capacity_ids: which ids a domain has. attribute_values, capacity_values: all of a domain.
    attribute_domains, capacity_domains: which domains there are.
    everything: any part of the device can matter.
    """

    attributes: frozenset[str] = frozenset()
    capacity: frozenset[str] = frozenset()
    driver: bool = False
    allow_multiple_allocations: bool = False
    attribute_ids: frozenset[str] = frozenset()
    capacity_ids: frozenset[str] = frozenset()
    attribute_values: frozenset[str] = frozenset()
    capacity_values: frozenset[str] = frozenset()
    attribute_domains: bool = False
    capacity_domains: bool = False
    everything: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the key columns, in order.

        `faults` (what makes a device unreadable, whatever is asked) is always one; then driver,
        allowMultipleAllocations, attributes/DOMAIN/ID, capacity/DOMAIN/ID, attributeIds/DOMAIN,
        capacityIds/DOMAIN, attributeValues/DOMAIN, capacityValues/DOMAIN, attributeDomains, capacityDomains;
        or only `faults` and `everything`.
        """
        if self.everything:
            return (FAULTS, EVERYTHING)
        names = [FAULTS]
        names += [DRIVER] if self.driver else []
        names += [MULTI] if self.allow_multiple_allocations else []
        for prefix, group in (
            ("attributes", self.attributes),
            ("capacity", self.capacity),
            ("attributeIds", self.attribute_ids),
            ("capacityIds", self.capacity_ids),
            ("attributeValues", self.attribute_values),
            ("capacityValues", self.capacity_values),
        ):
            names += [f"{prefix}/{name}" for name in sorted(group)]
        names += ["attributeDomains"] if self.attribute_domains else []
        names += ["capacityDomains"] if self.capacity_domains else []
        return tuple(names)


@dataclass(slots=True)
class _Found:
    attributes: set[str] = field(default_factory=set)
    capacity: set[str] = field(default_factory=set)
    attribute_ids: set[str] = field(default_factory=set)
    capacity_ids: set[str] = field(default_factory=set)
    attribute_values: set[str] = field(default_factory=set)
    capacity_values: set[str] = field(default_factory=set)
    flags: set[str] = field(default_factory=set)


Scope = Mapping[str, "tuple[str, ...] | None"]
"""What a variable stands for: a path into the device, or None for any other value."""


def find_reads(root: Node) -> Reads:
    """Walk the tree; the answer errs on the side of too much."""
    finder = _Finder()
    finder.walk(root, {"device": ()})
    found = finder.found
    return Reads(
        attributes=frozenset(found.attributes),
        capacity=frozenset(found.capacity),
        driver=DRIVER in found.flags,
        allow_multiple_allocations=MULTI in found.flags,
        attribute_ids=frozenset(found.attribute_ids),
        capacity_ids=frozenset(found.capacity_ids),
        attribute_values=frozenset(found.attribute_values),
        capacity_values=frozenset(found.capacity_values),
        attribute_domains="attributes" in found.flags,
        capacity_domains="capacity" in found.flags,
        everything=EVERYTHING in found.flags,
    )


class _Finder:
    def __init__(self) -> None:
        self.found = _Found()

    def walk(self, node: Node, scope: Scope) -> None:
        path = self._path(node, scope)
        if path is not None:
            self._use(path, whole=True)
            return
        if isinstance(node, Call) and self._narrow(node, scope):
            return
        if isinstance(node, Fold):
            self._fold(node, scope)
            return
        for child in children(node):
            self.walk(child, scope)

    def _path(  # noqa: PLR0911 - one return for each kind of node
        self, node: Node, scope: Scope
    ) -> tuple[str, ...] | None:
        """The constant path into the device that a node is; dynamic keys in it are recorded here."""
        if isinstance(node, Ident):
            if node.constant is not None:
                return None
            return () if node.name == ".device" else scope.get(node.name)
        if isinstance(node, Select):
            if node.constant is not None:
                return None
            base = self._path(node.operand, scope)
            return None if base is None else (*base, node.field)
        if isinstance(node, Call) and node.function in {"_[_]", "_[?_]", "_?._"}:
            base = self._path(node.args[0], scope)
            if base is None:
                return None
            key = node.args[1]
            if isinstance(key, Literal) and isinstance(key.value, str):
                return (*base, key.value)
            self._use(base, whole=True)
            self.walk(key, scope)
            return (*base, "*") if len(base) >= 3 else _ELSEWHERE
        return None

    def _narrow(self, node: Call, scope: Scope) -> bool:
        """`x in map`, size(map): which keys there are, not what they hold."""
        if node.function == "size":
            target = node.target if node.target is not None else (node.args[0] if node.args else None)
            path = None if target is None else self._path(target, scope)
            if path is None:
                return False
            self._use(path, whole=False)
            return True
        if node.function != "@in":
            return False
        path = self._path(node.args[1], scope)
        if path is None:
            return False
        item = node.args[0]
        if isinstance(item, Literal) and isinstance(item.value, str) and len(path) == 2:
            self._use((*path, item.value), whole=True)
        else:
            self._use(path, whole=False)
            self.walk(item, scope)
        return True

    def _fold(self, node: Fold, scope: Scope) -> None:
        path = self._path(node.range, scope)
        if path is None:
            self.walk(node.range, scope)
        else:
            self._use(path, whole=bool(node.var2))
        alias = self._path(node.accu_init, scope) if node.accu != "@result" else None
        if alias is None:
            self.walk(node.accu_init, scope)
        outer = {**scope, node.accu: alias}
        inner: dict[str, tuple[str, ...] | None] = {**outer, node.var: None}
        if node.var2:
            inner[node.var2] = None
        self.walk(node.condition, inner)
        if alias is None:
            self.walk(node.step, inner)
        self.walk(node.result, outer)

    def _use(self, path: tuple[str, ...], *, whole: bool) -> None:
        found = self.found
        if path is _ELSEWHERE:
            return
        if path in {(DRIVER,), (MULTI,)}:
            found.flags.update(path)
            return
        if not path or path[0] not in {"attributes", "capacity"}:
            found.flags.add(EVERYTHING)
            return
        kind = path[0]
        if len(path) == 1:
            found.flags.add(EVERYTHING if whole else kind)
        elif len(path) == 2:
            group: dict[tuple[str, bool], set[str]] = {
                ("attributes", True): found.attribute_values,
                ("attributes", False): found.attribute_ids,
                ("capacity", True): found.capacity_values,
                ("capacity", False): found.capacity_ids,
            }
            group[kind, whole].add(path[1])
        else:
            values = found.attributes if kind == "attributes" else found.capacity
            values.add(f"{path[1]}/{path[2]}")


_ELSEWHERE: Final[tuple[str, ...]] = ("?",)
"""What lies behind a dynamic key whose map was already recorded as a whole."""
