"""Sums with few entries: what a row adds is a short vector, yes or no, or a one in a cell of every column.

A part says how much its rows count (`worth`), and where those of each person begin (`starts`). A person adds the mean
over their rows, made whole once: of k rows, c of them in a cell, floor(c F/k), F the whole numbers of one row, and such
numbers add up to at most F, in integers (docs/proofs/evaluation.md).
`Margins` are numbers of rows under released weights: predicted chances and residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpsparse.exceptions import InternalError, ParameterError
from dpsparse.rows import kernels
from dpsparse.rows.parts import Parts, Query, parts_of_one, units_in_one
from dpsparse.rows.persons import means
from dpsparse.sensitivity import class_counts, count_below, feature_masses, signed_sum

LONGEST = 2**20  # numbers of a row whose squares are added right enough


def short_sum(
    parts: Parts,
    contributions: Callable[[Any], np.ndarray],
    size: int,
    bound: float,
    lemma: Callable[[str], Any],
    positive: bool = False,
) -> Query:
    """The sum of `contributions`, an array with a line of `size` numbers and norm at most `bound` for every row."""
    refuse_many_classes(size)

    def whole(unit: float) -> np.ndarray:
        if unit >= bound:
            raise InternalError("A sum in units that no row can reach would be noise alone.")
        return parts.sum((size,), partial(_add_short, contributions, unit, bound, positive))

    return Query((size,), lemma, whole)


def refuse_many_classes(n_classes: int) -> None:
    """Squares of more numbers are not added right enough."""
    if n_classes > LONGEST:
        raise ParameterError(f"More than {LONGEST} classes are not supported.")


def count(parts: Parts, answers: Callable[[Any], np.ndarray]) -> Query:
    """How many rows a yes-or-no question holds for: every row adds one whole number or none (a row of weight w
    that part of it), and a person the share of their rows."""

    def whole(unit: float) -> np.ndarray:
        return parts.sum((1,), partial(_add_count, answers, units_in_one(unit)))

    return Query((1,), count_below, whole)


def cells(
    parts: Parts,
    places: Callable[[Any], np.ndarray],
    n_columns: int,
    n_cells: int,
    lemma: Callable[[str], Any],
    shape: tuple[int, ...],
) -> Query:
    """How many rows are in each cell of each column; a negative place is no cell."""

    def whole(unit: float) -> np.ndarray:
        most = int(kernels.SAFE / unit)  # sqrt(columns) may be rounded down
        if most == 0:
            raise InternalError("A sum in units that no row can reach would be noise alone.")
        add = partial(_add_cells, places, most)
        return parts.sum((n_columns, n_cells), add).reshape(shape)

    return Query(shape, lemma, whole)


@dataclass(frozen=True, eq=False)
class MarginPart:
    """Margins of the rows of one part."""

    values: np.ndarray
    targets: np.ndarray
    starts: np.ndarray | None
    worth: np.ndarray | None


class Margins:
    """Margins of the rows under released weights; private."""

    def __init__(self, parts: Parts, n_outputs: int) -> None:
        self._parts, self._n_outputs = parts, n_outputs

    def class_totals(self, offset: np.ndarray) -> Query:
        """sum of the predicted probabilities, class by class."""
        n_classes = max(2, self._n_outputs)
        chances = partial(_chances, offset, n_classes)
        return short_sum(
            self._parts, chances, n_classes, 1.0, partial(feature_masses, 1.0), positive=True
        )

    def labels_by_margin(self, edges: np.ndarray) -> Query:
        """How many rows of each of two classes have a margin in each bin between public `edges`: (classes, bins)."""
        bins = len(edges) + 1
        places = partial(_label_bins, edges)
        return cells(self._parts, places, 1, 2 * bins, class_counts, (2, bins))

    def residual_total(self, offset: np.ndarray, reach: float) -> Query:
        """sum of target - margin - offset, each clipped to +-reach."""
        residuals = partial(_residuals, offset, reach)
        return short_sum(self._parts, residuals, 1, reach, partial(signed_sum, reach))


# ---- functions of one part -----------------------------------------------------------------------


def _add_short(
    contributions: Callable[[Any], np.ndarray],
    unit: float,
    bound: float,
    positive: bool,
    part: Any,
    out: np.ndarray,
) -> None:
    added = contributions(part)
    if part.worth is not None:
        added = added * part.worth[:, None]
    if part.starts is not None:
        added = means(part.starts, added)
    kernels.short_sum(added, unit, bound, positive, out)


def _add_count(answers: Callable[[Any], np.ndarray], one: int, part: Any, out: np.ndarray) -> None:
    found, first = answers(part), part.starts
    if first is None and part.worth is None:
        out += np.array([np.count_nonzero(found)]) * one  # arrays wrap around, and noise hides it
        return
    shares = found.astype(np.float64) * (1.0 if part.worth is None else part.worth)
    out += np.sum(parts_of_one(means(first, shares[:, None]), one))


def _add_cells(places: Callable[[Any], np.ndarray], most: int, part: Any, out: np.ndarray) -> None:
    found, starts, n_cells = places(part), part.starts, out.shape[1]
    found = found.reshape(len(found), len(out))
    worth = np.ones(len(found)) if part.worth is None else part.worth.astype(np.float64)
    shares = parts_of_one(worth, most)
    for k, column in enumerate(found.T):
        inside = column >= 0
        if starts is None:
            np.add.at(out[k], column[inside], shares[inside])
            continue
        rows = np.diff(starts)
        person = np.repeat(np.arange(len(rows)), rows)[inside]
        own, place = np.unique(person * n_cells + column[inside], return_inverse=True)
        size = rows[own // n_cells]
        whole, rest = np.zeros((2, len(own)), np.int64)  # of the sum over `size`, which may not fit
        np.add.at(whole, place, shares[inside] // rows[person])
        np.add.at(rest, place, shares[inside] % rows[person])
        np.add.at(out[k], own % n_cells, whole + rest // size)


def _chances(offset: np.ndarray, n_classes: int, part: MarginPart) -> np.ndarray:
    shares = np.empty((len(part.values), n_classes))
    kernels.probabilities(part.values, offset, shares)
    return shares


def _label_bins(edges: np.ndarray, part: MarginPart) -> np.ndarray:
    """The class of a row and the bin of its margin, as one number; what is not a number is in the last bin."""
    bins = len(edges) + 1
    return np.asarray(np.searchsorted(edges, part.values[:, 0]) + bins * (part.targets > 0.5))


def _residuals(offset: np.ndarray, reach: float, part: MarginPart) -> np.ndarray:
    return np.asarray(np.clip(part.targets[:, None] - part.values - offset, -reach, reach))
