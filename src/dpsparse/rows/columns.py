"""Raw columns before they are features: numbers that are counted in cells, and names that are weighed.

    numbers    a row is in one cell of every column; a gap is a cell too, or none        norm at most sqrt(columns)
    names      a row with k different names adds 1/sqrt(k) to the weight of each         norm at most 1

Of a person every row counts as one over their number of rows, and their names are those of all of their rows; so a
person adds no more than one row may. A cell is found by comparisons alone and a weight is made whole once, so both
bounds are facts about integers (docs/proofs/preparation.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from dpsparse.clipping import by_person
from dpsparse.rows import kernels
from dpsparse.rows.query import Query, remember
from dpsparse.sensitivity import column_cells, shared_names

# Powers of two that have a cell of their own; smaller numbers are about zero, larger ones are as the largest.
LOWEST, HIGHEST = -20, 40
_POWERS = HIGHEST - LOWEST
POWER_CELLS = 2 * _POWERS + 2  # negative, about zero, positive, and missing, which is the last
POWER_EDGES = np.concatenate(
    [-(2.0 ** np.arange(HIGHEST, LOWEST - 1, -1)), 2.0 ** np.arange(LOWEST, HIGHEST + 1)]
)


class NumberColumns:
    """Columns of numbers, one row each; what is not a number is missing. Private."""

    def __init__(self, values: np.ndarray, groups: object = None) -> None:
        self._values = np.asarray(values, np.float64)
        self._sizes = np.ones(len(values), np.int64)  # rows of the person of each row
        if groups is not None:
            order, starts = by_person(groups, len(values))
            self._sizes[order] = np.repeat(np.diff(starts), np.diff(starts))

    @property
    def n_columns(self) -> int:
        return int(self._values.shape[1])

    def powers(self) -> Query:
        """Rows of each column by sign and power of two, and the rows in which it is missing."""
        return self._counts(partial(_power_cells, self._values), POWER_CELLS)

    def between(self, edges: np.ndarray) -> Query:
        """Rows of each column below its first edge, between its edges, and from the last one on.

        A missing number is in no cell.
        """

        def cells(j: int) -> np.ndarray:
            x = self._values[:, j]
            found = np.searchsorted(edges[j], x, side="right")
            return np.where(np.isnan(x), -1, found)

        return self._counts(cells, edges.shape[1] + 1)

    def outside(self, low: np.ndarray, high: np.ndarray) -> Query:
        """Rows of each column below `low`, within, above `high`; a missing number is in no cell."""

        def cells(j: int) -> np.ndarray:
            x = self._values[:, j]
            side = (x >= low[j]).astype(np.int64) + (x > high[j])
            return np.where(np.isnan(x), -1, side)

        return self._counts(cells, 3)

    def _counts(self, cells: Callable[[int], np.ndarray], n_cells: int) -> Query:
        """How many rows are in each cell of each column; a negative cell is none."""

        def whole(unit: float) -> np.ndarray:
            out = np.zeros((self.n_columns, n_cells), np.int64)
            shares = int(kernels.SAFE / unit) // self._sizes  # sqrt(columns) may be rounded down
            for j in range(self.n_columns):
                found = cells(j)
                inside = found >= 0
                np.add.at(out[j], found[inside], shares[inside])
            return out

        lemma = partial(column_cells, self.n_columns)
        return Query((self.n_columns, n_cells), lemma, remember(whole))


def _power_cells(values: np.ndarray, j: int) -> np.ndarray:
    """In the order of the numbers; the exponent is read off the float, so no rounding is involved."""
    x = values[:, j]
    size = np.minimum(np.abs(x), 2.0**HIGHEST * (1.0 - 2.0**-50))  # infinity is as large as can be
    exponent = np.frexp(np.where(np.isnan(size), 0.0, size))[1] - 1
    place = np.where(size < 2.0**LOWEST, -1, exponent - LOWEST)
    cell = np.where(place < 0, _POWERS, np.where(x > 0, _POWERS + 1 + place, _POWERS - 1 - place))
    return np.where(np.isnan(x), POWER_CELLS - 1, cell)


class Names:
    """Names that occur in rows: words of a text, values of columns. Private, `known` included.

    Of the names of a row (or person) at most `most` count. Which ones depends on that row alone: they are drawn
    by a hash of the name and all of the row's names, so that no row and no order of rows has a say.
    """

    def __init__(self, rows: Sequence[Sequence[str]], most: int, groups: object = None) -> None:
        self.most = most
        if groups is not None:
            order, starts = by_person(groups, len(rows))
            rows = [
                [name for i in order[a:b] for name in rows[i]] for a, b in pairwise(starts.tolist())
            ]
        chosen = [_chosen(names, most) for names in rows]
        self.known = tuple(sorted({name for names in chosen for name in names}))
        place = {name: j for j, name in enumerate(self.known)}
        self._sizes = np.array([len(names) for names in chosen], np.int64)
        self._places = np.array([place[name] for names in chosen for name in names], np.int64)

    def weights(self) -> Query:
        """The weight of every known name."""

        def whole(unit: float) -> np.ndarray:
            out = np.zeros(len(self.known), np.int64)
            shares = np.array(
                [0, *(int(kernels.SAFE / math.sqrt(k) / unit) for k in range(1, self.most + 1))],
                np.int64,
            )
            np.add.at(out, self._places, np.repeat(shares[self._sizes], self._sizes))
            return out

        return Query((len(self.known),), shared_names, whole)


def _chosen(names: Sequence[str], most: int) -> list[str]:
    """All different names, or `most` of them in the order of a hash that this row alone decides."""
    different = sorted(set(names))
    if len(different) <= most:
        return different
    key = hashlib.blake2b("\0".join(different).encode(), digest_size=16).digest()

    def rank(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=key, digest_size=8).digest()

    return sorted(different, key=rank)[:most]
