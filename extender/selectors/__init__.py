"""Device selectors: CEL as Kubernetes evaluates it.

Compile with `compile`, prepare a device once with `prepare`, ask with `Program.evaluate`.
"""

from __future__ import annotations

from extender.selectors.device import Prepared, prepare
from extender.selectors.environment import COST_LIMIT, Environment
from extender.selectors.errors import CompileError, Issue
from extender.selectors.program import Program, Value, Verdict, compile  # noqa: A004 - the seam's name
from extender.selectors.reads import Reads

__all__ = [
    "COST_LIMIT",
    "CompileError",
    "Environment",
    "Issue",
    "Prepared",
    "Program",
    "Reads",
    "Value",
    "Verdict",
    "compile",
    "prepare",
]
