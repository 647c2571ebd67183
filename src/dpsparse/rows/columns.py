"""Raw columns before they are features: numbers that are counted in cells, and names that are weighed.

    numbers    a row is in one cell of every column; missing is a cell too, or none      norm at most sqrt(columns)
    names      a row with k different names adds 1/sqrt(k) to the weight of each         norm at most 1

Of a person every row counts as one over their number of rows, and their names are those of all of their rows; so a
person adds no more than one row may. A cell is found by comparisons alone and a weight is made whole once, so both
bounds are facts about integers (docs/proofs/preparation.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from dpsparse.domain import Domain
from dpsparse.domain.clipping import Part, by_person
from dpsparse.rows import kernels
from dpsparse.rows.memory import Rows
from dpsparse.rows.parts import InMemory, Numbers, Parts, Query, cells
from dpsparse.sensitivity import column_cells, shared_names

# Powers of two that have a cell of their own; smaller numbers are about zero, larger ones are as the largest.
_POWERS = 2.0 ** np.arange(-20, 41)
POWER_EDGES = np.concatenate([-_POWERS[::-1], _POWERS])
POWER_CELLS = len(POWER_EDGES)  # those between edges, and missing, which is the last


@dataclass(frozen=True, eq=False)
class RawPart:
    """Raw rows as a step of preparation reads them, their targets, and the person of every row."""

    cells: Any
    targets: Any = None
    groups: Any = None


class RawRows:
    """Raw rows before they are features; private. A step maps them row by row and asks for queries about them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @classmethod
    def of(cls, cells: Any, targets: Any = None, groups: Any = None) -> RawRows:
        """One table, here."""
        return cls(InMemory([RawPart(cells, targets, groups)]))

    def map(self, f: Callable[[Any], Any]) -> RawRows:
        """f(cells), a function of single rows."""
        return RawRows(self._parts.map(partial(_mapped, f)))

    def numbers(self, matrix: Callable[[Any], np.ndarray], n_columns: int) -> NumberColumns:
        """Columns of numbers: `matrix(cells)` has a line for every row."""
        return NumberColumns(self._parts.map(partial(_numbers, matrix)), n_columns)

    def names(self, names: Callable[[Any], Sequence[Sequence[str]]], most: int) -> Names:
        """The names of every row, at most `most` of which count."""
        return Names(self._parts.map(partial(_named, names, most)), most)

    def clipped(self, domain: Domain, labels: np.ndarray | None, n_features: int) -> Rows:
        """Prepared rows, made to satisfy `domain`."""
        return Rows(self._parts.map(partial(_clipped, domain, labels)), domain, n_features)


def _mapped(f: Callable[[Any], Any], part: RawPart) -> RawPart:
    return replace(part, cells=f(part.cells))


def _clipped(domain: Domain, labels: np.ndarray | None, part: RawPart) -> Part:
    return domain.part(part.cells, part.targets, labels=labels, groups=part.groups)


def _numbers(matrix: Callable[[Any], np.ndarray], part: RawPart) -> Numbers:
    """Sorted by person, where rows have persons."""
    values = np.asarray(matrix(part.cells), np.float64)
    if part.groups is None:
        return Numbers(values, None, None)
    order, starts = by_person(part.groups, len(values))
    return Numbers(values[order], starts, None)


class NumberColumns:
    """Columns of numbers, one row each; what is not a number is missing. Private."""

    def __init__(self, parts: Parts, n_columns: int) -> None:
        self._parts, self.n_columns = parts, n_columns

    def powers(self) -> Query:
        """Rows of each column by sign and power of two, and the rows in which it is missing."""
        return self._counts(lambda j, x: _power_cells(x), POWER_CELLS)

    def between(self, edges: np.ndarray) -> Query:
        """Rows of each column below its first edge, between its edges, and from the last one on.

        A missing number is in no cell.
        """

        def place(j: int, x: np.ndarray) -> np.ndarray:
            return np.where(np.isnan(x), -1, np.searchsorted(edges[j], x, side="right"))

        return self._counts(place, edges.shape[1] + 1)

    def codes(self, n_codes: int) -> Query:
        """Rows of each column by its number, which is one of 0, 1, ..., n_codes - 1, or missing and in no cell."""
        return self.between(np.tile(np.arange(1, n_codes) - 0.5, (self.n_columns, 1)))

    def outside(self, low: np.ndarray, high: np.ndarray) -> Query:
        """Rows of each column below `low`, within, above `high`, and those in which it is missing."""

        def place(j: int, x: np.ndarray) -> np.ndarray:
            return np.where(np.isnan(x), 3, (x >= low[j]).astype(np.int64) + (x > high[j]))

        return self._counts(place, 4)

    def _counts(self, place: Callable[[int, np.ndarray], np.ndarray], n_cells: int) -> Query:
        """How many rows are in each cell of each column; a negative cell is none."""
        lemma, n_columns = partial(column_cells, self.n_columns), self.n_columns
        places = partial(_places, place)
        return cells(self._parts, places, n_columns, n_cells, lemma, (n_columns, n_cells))


def _places(place: Callable[[int, np.ndarray], np.ndarray], part: Numbers) -> np.ndarray:
    return np.column_stack([place(j, column) for j, column in enumerate(part.values.T)])


def _power_cells(x: np.ndarray) -> np.ndarray:
    """In the order of the numbers; 0 is in the middle."""
    size = np.searchsorted(_POWERS[:-1], np.abs(x), side="right")
    cell = len(_POWERS) - 1 + np.where(x < 0.0, -size, size)
    return np.where(np.isnan(x), POWER_CELLS - 1, cell)


class Names:
    """Names that occur in rows: words of a text, values of columns. Private, `known` included.

    Of the names of a row (or person) at most `most` count. Which ones depends on that row alone: they are drawn
    by a hash of the name and all of the row's names, so that no row and no order of rows has a say.
    """

    def __init__(self, parts: Parts, most: int) -> None:
        self._parts, self.most = parts, most

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Every name that counts for some row, sorted."""
        return tuple(sorted({name for known in self._parts.collect(_known) for name in known}))

    def weights(self) -> Query:
        """The weight of every known name."""
        size = len(self.known)

        def whole(unit: float) -> np.ndarray:
            shares = np.array(
                [0, *(int(kernels.SAFE / math.sqrt(k) / unit) for k in range(1, self.most + 1))],
                np.int64,
            )
            place = {name: j for j, name in enumerate(self.known)}
            return self._parts.sum((size,), partial(_add_names, shares, place))

        return Query((size,), shared_names, whole)


_Named = list[list[str]]  # the names that count, of every row or person


def _named(names: Callable[[Any], Sequence[Sequence[str]]], most: int, part: RawPart) -> _Named:
    rows = names(part.cells)
    if part.groups is not None:
        order, starts = by_person(part.groups, len(rows))
        rows = [
            [name for i in order[a:b] for name in rows[i]] for a, b in pairwise(starts.tolist())
        ]
    return [_chosen(own, most) for own in rows]


def _known(named: _Named) -> set[str]:
    return {name for own in named for name in own}


def _add_names(
    shares: np.ndarray, place: Mapping[str, int], named: _Named, out: np.ndarray
) -> None:
    sizes = np.array([len(own) for own in named], np.int64)
    places = np.array([place[name] for own in named for name in own], np.int64)
    np.add.at(out, places, np.repeat(shares[sizes], sizes))


def _chosen(names: Sequence[str], most: int) -> list[str]:
    """All different names, or `most` of them in the order of a hash that this row alone decides."""
    different = sorted(set(names))
    if len(different) <= most:
        return different
    key = hashlib.blake2b("\0".join(different).encode(), digest_size=16).digest()

    def rank(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=key, digest_size=8).digest()

    return sorted(different, key=rank)[:most]
