"""The numbers of live telemetry: one row a device, one column a reading, with when and from whom.

A row's cell holds a value, or why there is none, and the instant (our clock) at which it was read.
Never: nodes, names, clocks of others.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.api.telemetry import READINGS

Rows = NDArray[np.int32]
Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]

COLUMN: Final = {name: i for i, name in enumerate(READINGS)}
# Smoothed by EWMA; the rest are counters, modes and facts.
_SMOOTHED_COLUMNS: Final = slice(COLUMN["memory_used"], COLUMN["power"] + 1)
SMOOTHED: Final = READINGS[_SMOOTHED_COLUMNS]
# Two fresh sources may differ so far before it counts as a disagreement; other columns must agree exactly.
_BOUNDS: Final = {
    "memory_used": 1024.0 * (1 << 20),
    "memory_reserved": 1024.0 * (1 << 20),
    "memory_total": 64.0 * (1 << 20),
    "utilisation_gpu": 50.0,
    "utilisation_memory": 50.0,
    "temperature": 15.0,
    "power": 250_000.0,
    "clock_sm": 1000.0,
    "clock_memory": 1000.0,
}
_COUNTED: Final = COLUMN["ecc_corrected_volatile"]
_NEVER: Final = -np.inf
_ABSENT: Final = 2  # how worn a reading is: 0 within fresh_s, 1 within absent_s, 2


class Cell(IntEnum):
    """What a cell holds."""

    EMPTY = 0
    VALUE = 1
    UNSUPPORTED = 2
    LOST = 3
    ERROR = 4  # as input only: what is there stays, and ages


class Freshness(IntEnum):
    """What a judge may think of a reading."""

    FRESH = 0
    STALE = 1
    UNSUPPORTED = 2
    LOST = 3
    ABSENT = 4


# By cell and by how worn it is.
_FRESHNESS: Final = np.full((len(Cell), _ABSENT + 1), Freshness.ABSENT, np.uint8)
_FRESHNESS[Cell.VALUE, :_ABSENT] = Freshness.FRESH, Freshness.STALE
_FRESHNESS[Cell.UNSUPPORTED, :_ABSENT] = Freshness.UNSUPPORTED
_FRESHNESS[Cell.LOST, :_ABSENT] = Freshness.LOST
_FRESHNESS.flags.writeable = False


class Columns:
    """Growable arrays of `len(READINGS)` columns. Row numbers are reused after `free`."""

    def __init__(self, half_life_s: float, fresh_s: float, absent_s: float) -> None:
        self._half_life = half_life_s
        self._fresh = fresh_s
        self._absent = absent_s
        self._free: list[int] = []
        self._rows = 0
        self._bounds = np.array([_BOUNDS.get(name, 0.0) for name in READINGS])
        self._values, self._cells, self._read_at, self._sources = self._blank(0)
        self._smooth = np.zeros((0, len(SMOOTHED)))
        self._smooth_at = np.zeros((0, len(SMOOTHED)))
        self._rose_at = np.zeros(0)
        self._written = np.zeros(0, dtype=np.int64)
        self.version = 0  # grows with everything that is written
        self.disagreements = np.zeros(len(READINGS), dtype=np.int64)

    @staticmethod
    def _blank(rows: int) -> tuple[Floats, Codes, Floats, Codes]:
        shape = (rows, len(READINGS))  # column by column: readers want few columns of the whole fleet
        return (
            np.zeros(shape, order="F"),
            np.full(shape, Cell.EMPTY, dtype=np.uint8, order="F"),
            np.full(shape, _NEVER, order="F"),
            np.zeros(shape, dtype=np.uint8, order="F"),
        )

    def __len__(self) -> int:
        return self._rows - len(self._free)

    @property
    def capacity(self) -> int:
        """Rows that the arrays have room for."""
        return len(self._values)

    def take(self) -> int:
        """A blank row."""
        if self._free:
            return self._free.pop()
        if self._rows == len(self._values):
            self._grow(max(64, 2 * self._rows))
        self._rows += 1
        return self._rows - 1

    def free(self, row: int) -> None:
        """Blank a row, to be taken again."""
        self._cells[row] = Cell.EMPTY
        self._read_at[row] = _NEVER
        self._smooth_at[row] = _NEVER
        self._rose_at[row] = _NEVER
        self._touch(row)
        self._free.append(row)

    def _grow(self, rows: int) -> None:
        kept = self._rows
        fresh = self._blank(rows)
        for new, old in zip(fresh, (self._values, self._cells, self._read_at, self._sources), strict=True):
            new[:kept] = old[:kept]  # type: ignore[index]  # a union of equal shapes
        self._values, self._cells, self._read_at, self._sources = fresh
        smooth = np.zeros((rows, len(SMOOTHED)), order="F")
        at = np.full((rows, len(SMOOTHED)), _NEVER, order="F")
        smooth[:kept], at[:kept] = self._smooth[:kept], self._smooth_at[:kept]
        self._smooth, self._smooth_at = smooth, at
        self._rose_at = np.concatenate((self._rose_at, np.full(rows - len(self._rose_at), _NEVER)))
        self._written = np.concatenate((self._written, np.zeros(rows - len(self._written), np.int64)))

    def _touch(self, rows: Rows | int) -> None:
        self.version += 1
        self._written[rows] = self.version

    def written_after(self, version: int, rows: Rows) -> NDArray[np.bool_]:
        """Which rows were written to since `version` (-1: a row that was never), bool[n]."""
        if not self.capacity:
            return np.zeros(len(rows), np.bool_)
        return (self._written[rows] > version) & (rows >= 0)

    def write(self, rows: Rows, values: Floats, cells: Codes, read_at: float, source: int) -> None:
        """Write n rows of one source, read at one instant of our clock.

        `values` and `cells` are of shape (n, len(READINGS)); `rows` holds no row twice. The freshest reading
        of a cell wins, at equal times the source earlier in the order. Unsupported gives way to what
        another source reads at about the same time. An error displaces nothing.
        """
        self._touch(rows)
        old_at, old_sources = self._read_at[rows], self._sources[rows]
        is_value = cells == Cell.VALUE
        if (old_at < read_at).all() and (old_sources == source).all() and not (cells == Cell.ERROR).any():
            # Nobody else speaks of these rows, and everything is newer: the common case, by the same rules.
            self._count(rows, values, is_value[:, _COUNTED], read_at)
            self._values[rows], self._cells[rows], self._read_at[rows] = values, cells, read_at
            self._smoothen(rows, values, is_value, read_at)
            return
        old_cells = self._cells[rows]
        had_value = old_cells == Cell.VALUE
        foreign = had_value & (old_sources != source)
        near = foreign & (np.abs(old_at - read_at) <= self._fresh)
        if near.any():
            apart = np.abs(self._values[rows] - values) > self._bounds
            self.disagreements += (near & is_value & apart).sum(axis=0)
        newer = (old_at < read_at) | ((old_at == read_at) & (old_sources >= source))
        blind = (old_cells == Cell.UNSUPPORTED) & (old_sources != source) & (old_at - read_at <= self._fresh)
        wins = newer & (is_value | (cells == Cell.LOST) | ((cells == Cell.UNSUPPORTED) & ~near))
        wins |= is_value & blind
        self._count(rows, values, (wins & is_value)[:, _COUNTED], read_at)
        at, columns = np.nonzero(wins)
        where = (rows[at], columns)
        self._values[where] = values[at, columns]
        self._cells[where] = cells[at, columns]
        self._read_at[where] = read_at
        self._sources[where] = source
        self._smoothen(rows, values, wins & is_value, read_at)

    def _smoothen(self, rows: Rows, values: Floats, taken: NDArray[np.bool_], read_at: float) -> None:
        taken, new = taken[:, _SMOOTHED_COLUMNS], values[:, _SMOOTHED_COLUMNS]
        old, old_at = self._smooth[rows], self._smooth_at[rows]
        kept = np.exp2((old_at - read_at) / self._half_life)  # 0 for the first reading
        self._smooth[rows] = np.where(taken, kept * old + (1.0 - kept) * new, old)
        self._smooth_at[rows] = np.where(taken, read_at, old_at)

    def _count(self, rows: Rows, values: Floats, taken: NDArray[np.bool_], read_at: float) -> None:
        """Note who has more corrected memory errors than before; called before the new values are written."""
        known = taken & (self._cells[rows, _COUNTED] == Cell.VALUE)
        rose = known & (values[:, _COUNTED] > self._values[rows, _COUNTED])
        if rose.any():
            self._rose_at[rows[rose]] = read_at

    def errors_rose_at(self, rows: Rows) -> Floats:
        """When the count of corrected memory errors was last seen to rise, float64[n]; -inf: never."""
        if not self.capacity:
            return np.full(len(rows), _NEVER)
        return np.where(rows >= 0, self._rose_at[rows], _NEVER)

    def lose(self, row: int, at: float) -> None:
        """The device is gone: every cell of the row says so."""
        self._cells[row] = Cell.LOST
        self._read_at[row] = at
        self._touch(row)

    def ages(self, rows: Rows, now: float) -> Floats:
        """Seconds since anything of a row was read last, float64[n]; inf: never, or no row."""
        if not self.capacity:
            return np.full(len(rows), np.inf)
        return np.where(rows >= 0, now - self._read_at[rows].max(axis=1), np.inf)

    def column(self, name: str, rows: Rows, now: float) -> tuple[Floats, Codes]:
        """Values and `Freshness` of one reading for rows (-1: absent); 0 unless fresh or stale."""
        return self._look(self._values, COLUMN[name], COLUMN[name], rows, now)

    def smoothed(self, name: str, rows: Rows, now: float) -> tuple[Floats, Codes]:
        """As `column`, smoothed by the half-life. Raises ValueError for a reading that is not."""
        if name not in SMOOTHED:
            raise ValueError(f"{name} is not smoothed")
        return self._look(self._smooth, SMOOTHED.index(name), COLUMN[name], rows, now)

    def same_until(self, name: str, rows: Rows, now: float) -> Floats:
        """Until when the `Freshness` of one reading stays what it is if nothing is written, float64[n]."""
        if not self.capacity:
            return np.full(len(rows), np.inf)
        read_at, worn = self._worn(COLUMN[name], rows, now)
        lasts = np.array([self._fresh, self._absent, 0.0])
        return np.where(worn < _ABSENT, read_at + lasts[worn], np.inf)

    def _look(self, values: Floats, column: int, state: int, rows: Rows, now: float) -> tuple[Floats, Codes]:
        if not self.capacity:
            return np.zeros(rows.shape), np.full(rows.shape, Freshness.ABSENT, dtype=np.uint8)
        cells = np.where(rows >= 0, self._cells[:, state][rows], Cell.EMPTY)
        fresh = _FRESHNESS[cells, self._worn(state, rows, now)[1]]
        return np.where(fresh <= Freshness.STALE, values[:, column][rows], 0.0), fresh

    def _worn(self, column: int, rows: Rows, now: float) -> tuple[Floats, Codes]:
        """When the cells were read (of row -1: those of another row), and how worn that is."""
        read_at = self._read_at[:, column][rows]
        age = now - read_at
        return read_at, (age > self._fresh).astype(np.uint8) + (age > self._absent)
