"""Which language a selector is written in: Kubernetes version, stored or new, feature gates.

Owns the mapping from a release to libraries and syntax (apiserver pkg/cel/environment/base.go,
dynamic-resource-allocation cel/compile.go). Holds no functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COST_LIMIT: Final = 1_000_000
"""Run-time cost that one evaluation may use (resource/v1 CELSelectorExpressionMaxCost)."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a selector.

    version: (major, minor) of the Kubernetes binary that evaluates; 1.34 to 1.37 are known.
    stored: True for StoredExpressions, which kube-scheduler uses: all libraries of the binary, gates ignored;
        False for NewExpressions (kube-apiserver on create): libraries of the version before, gates respected.
    list_attributes: gate DRAListTypeAttributes. consumable_capacity: gate DRAConsumableCapacity.
    derived: the expression makes a derived attribute (gate DRADerivedAttributes) and may yield any scalar.
    cost_limit: where evaluation stops; at most the default, which libraries rely on.
    """

    version: tuple[int, int] = (1, 37)
    stored: bool = True
    list_attributes: bool = False
    consumable_capacity: bool = True
    derived: bool = False
    cost_limit: int = COST_LIMIT

    @property
    def libraries(self) -> tuple[int, int]:
        """The version whose libraries are present."""
        return self.version if self.stored else (self.version[0], self.version[1] - 1)

    @property
    def dynamic_attributes(self) -> bool:
        """Whether an attribute's type is dyn (1.36 on); else any, which macros can't iterate."""
        return self.libraries >= (1, 36) and (self.stored or self.list_attributes)

    @property
    def list_values(self) -> bool:
        """Whether list attributes have a value; before 1.36 they are a run-time error."""
        return self.version >= (1, 36)

    @property
    def multi_allocation(self) -> bool:
        """Whether device.allowMultipleAllocations is declared."""
        return self.stored or self.consumable_capacity

    @property
    def includes(self) -> bool:
        """Whether x.includes(y) exists: in 1.36 it comes with list attributes, from 1.37 always."""
        return self.libraries >= (1, 37) or self.dynamic_attributes

    @property
    def includes_limit(self) -> int | None:
        """Elements that includes() accepts at most (1.36 only)."""
        return 48 if self.version == (1, 36) else None

    @property
    def extended_lists(self) -> bool:
        """Whether cel-go's list library (sort, slice, flatten, ...) is present."""
        return self.libraries >= (1, 34)

    @property
    def escaped_identifiers(self) -> bool:
        """Whether names may stand between back-ticks (cel-go 0.28, vendored by 1.37)."""
        return self.version >= (1, 37)

    @property
    def allows_lists(self) -> bool:
        """Whether a derived attribute may be a list."""
        return self.stored or self.list_attributes
