"""Columns by row that grow with the rows: what all who keep one do alike."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)


def resized(column: npt.NDArray[T], size: int, blank: int = 0) -> npt.NDArray[T]:
    """A copy with `size` places in the last dimension, of the same dtype; new places are `blank`."""
    made = np.full((*column.shape[:-1], size), blank, column.dtype)
    kept = min(size, column.shape[-1])
    made[..., :kept] = column[..., :kept]
    return made
