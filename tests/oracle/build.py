"""Builds the oracle, the Go program that answers as kube-scheduler's own code does.

Where Go comes from and where binaries are kept is the control plane's build's business.
``python -m tests.oracle.build`` builds it from the command line and prints where it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.controlplane.build import BuildError, Program, build

ORACLE = Program("oracle", Path(__file__).resolve().parent / "go", ".", ("-ldflags", "-s -w"))


def build_oracle() -> Path:
    """Return the oracle's binary, building it first where it is missing.

    Raises:
        BuildError: Go can't be had, or the build failed.
    """
    return build(ORACLE)


def main() -> int:
    """Build the oracle and print its path."""
    try:
        print(build_oracle(), flush=True)
    except BuildError as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
