"""Which NVML call the reader is in, kept in memory that the agent can read while the reader hangs."""

from __future__ import annotations

import mmap
import os
from typing import Final

_SIZE: Final = 128


class Progress:
    """A page shared through a memfd: the reader marks, the agent looks."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, _SIZE)

    @staticmethod
    def create() -> int:
        """A descriptor to hand to the reader. The caller closes it."""
        descriptor = os.memfd_create("nvml-progress")
        os.ftruncate(descriptor, _SIZE)
        return descriptor

    def mark(self, operation: str) -> None:
        """The reader is about to make this call."""
        text = operation.encode()[: _SIZE - 1]
        self._page[: len(text) + 1] = text + b"\0"

    def current(self) -> str:
        """The call last marked; empty before the first."""
        return self._page[:].split(b"\0", 1)[0].decode(errors="replace")

    def close(self) -> None:
        """Unmap the page."""
        self._page.close()
