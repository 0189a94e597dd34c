"""Faults of upstream at v0.37.2 that the comparison recognises, each by a named predicate with its reason.

The faults that older releases had (distinctAttribute compared with the last device only, list intersections
not restored, counters leaking from rejected candidates, counter caches shared by pools of one name) are fixed
in v0.37.2, so none of them is recognised here: a difference of that kind is a difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle.subjects.subject import KnownBug

if TYPE_CHECKING:
    from tests.oracle.client import AllocateAnswer, Case, SelectorVerdict

OPTIONAL_ENTRY_PANIC = KnownBug(
    "optional-entry-panics",
    "cel-go's homogeneous-literal validator asks the type of an optional entry what it wraps; type "
    "dyn has no answer, so {1: 1, ?2: dyn(2)} ends the compiler with a panic",
)
CONSTANT_KEY_PANIC = KnownBug(
    "constant-key-panics",
    "folding a constant map whose keys Go cannot hash (bytes) ends the compiler with a panic",
)
CLASS_SELECTOR_PANIC = KnownBug(
    "class-selector-panics",
    "a class selector without CEL is dereferenced unchecked, where a request's is refused with an error; API "
    "validation keeps such classes out",
)
STEP_PANIC = KnownBug(
    "step-division-panics",
    "a range step past int64 reads as zero and the request is divided by it unguarded; API validation keeps "
    "such steps out",
)


def known_selector_fault(theirs: SelectorVerdict) -> KnownBug | None:
    """Recognise a verdict that is a known fault."""
    if theirs.verdict != "panic":
        return None
    if "hash of unhashable type" in theirs.error:
        return CONSTANT_KEY_PANIC
    return OPTIONAL_ENTRY_PANIC if "index out of range [0] with length 0" in theirs.error else None


def known_allocator_fault(case: Case, theirs: AllocateAnswer) -> KnownBug | None:
    """Recognise an answer that is a known fault."""
    if theirs.outcome != "panic":
        return None
    text = theirs.error or ""
    if "integer divide by zero" in text:
        return STEP_PANIC
    without_cel = any(
        "cel" not in selector
        for entry in case["classes"]
        for selector in (entry.get("spec") or {}).get("selectors") or ()
    )
    return CLASS_SELECTOR_PANIC if without_cel and "nil pointer dereference" in text else None
