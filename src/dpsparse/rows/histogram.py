"""What a public model says about private rows, and the sums that an evaluation may ask for.

    a cell of a row      1 in its cell; of a person: the share of their rows in each cell      >= 0, norm at most 1
    a cell of each of K  the same K times, side by side                                        norm at most sqrt K
    v in [0, 1]          v - 1/2; of a person: the mean of their rows                          at most 1/2
    v in [-1, 1]         v; of a person: the mean of their rows                                at most 1

`groups` names the person of every row, and a person then counts as one row does without it: the same bounds,
for any number of rows. A row of a person with k rows adds floor(F/k) to its cell, F = floor(1/unit):
k such numbers add up to at most F, in integers. Means are made before they are truncated, once for each person
(docs/proofs/evaluation.md). A row of weight w in [0, 1] adds that part of what it would add; the weight of a person is
the mean of those of their rows, and what a person says is a weighted mean (docs/proofs/weights.md).
Scores come from outside; everything computed from them here is done row by row with scalar arithmetic, so that what
one row adds does not depend on where in the table it stands.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpsparse.domain.clipping import TINY
from dpsparse.jit import njit
from dpsparse.rows import kernels
from dpsparse.rows.parts import InMemory, Parts, Query, parts_of_one, units_in_one
from dpsparse.sensitivity import count_below, feature_masses, signed_sum

LONGEST_LOSS = 6.0  # log loss of a row is cut here: a probability of .0025


@dataclass(frozen=True, eq=False)
class _Units:
    """How many rows or persons there are, the person of every row, the number of rows that person has, and how much
    every row counts."""

    n_units: int
    person: np.ndarray | None
    sizes: np.ndarray
    worth: np.ndarray

    @classmethod
    def of(cls, n_rows: int, groups: np.ndarray | None, worth: np.ndarray | None) -> _Units:
        worth = np.ones(n_rows) if worth is None else worth.astype(np.float64)
        if groups is None:
            return cls(n_rows, None, np.ones(n_rows, np.int64), worth)
        _, person = np.unique(groups, return_inverse=True)
        counts = np.bincount(person).astype(np.int64)
        return cls(len(counts), person, counts[person], worth)

    @cached_property
    def worth_of_units(self) -> np.ndarray:
        """How much every row or person counts, at most one."""
        if self.person is None:
            return self.worth
        totals = np.bincount(self.person, weights=self.worth)
        return np.asarray(totals / np.bincount(self.person))

    def means(self, values: np.ndarray) -> np.ndarray:
        """One number for each row, or the mean of each person's; added in the order of their rows."""
        if self.person is None:
            return values
        totals = np.bincount(self.person, weights=self.worth * values)
        return np.asarray(totals / np.maximum(np.bincount(self.person, weights=self.worth), TINY))


@dataclass(frozen=True, eq=False)
class _LabelPart:
    units: _Units
    truth: np.ndarray
    guess: np.ndarray
    score: np.ndarray | None
    chances: np.ndarray | None
    losses: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class _NumberPart:
    units: _Units
    targets: np.ndarray
    absolute: np.ndarray
    squares: np.ndarray


class _Scored:
    """Rows, or persons, that contribute one bounded vector each; private. Queries are made of public facts: rows are
    read when one is asked."""

    _parts: Parts

    def __len__(self) -> int:
        """Rows or persons; private under add-remove, see `Releases.number_of_rows`."""
        return sum(self._parts.collect(_n_units))

    def count(self) -> Query:
        """How many rows or persons there are; public under replace-one, so never asked for there."""

        def whole(unit: float) -> np.ndarray:
            return self._parts.sum((1,), partial(_add_units, units_in_one(unit)))

        return Query((1,), count_below, whole)

    def _cells(self, cells: Callable[[Any], np.ndarray], n_cells: int, K: int = 1) -> Query:
        """How many rows fall into each of `n_cells` cells; with a cell in each of K columns, into each of K n_cells."""

        def whole(unit: float) -> np.ndarray:
            most = int(kernels.SAFE / unit)  # sqrt K may be rounded down
            return self._parts.sum((K * n_cells,), partial(_add_cells, cells, n_cells, most))

        return Query((K * n_cells,), partial(feature_masses, math.sqrt(K)), whole)

    def _centred(self, values: Callable[[Any], np.ndarray]) -> Query:
        """sum of v - 1/2 over numbers in [0, 1]."""
        return self._short(values, 0.5, True)

    def _short(self, values: Callable[[Any], np.ndarray], bound: float, centred: bool) -> Query:
        def whole(unit: float) -> np.ndarray:
            return self._parts.sum((1,), partial(_add_short, values, unit, bound, centred))

        return Query((1,), partial(signed_sum, bound), whole)


class ScoredLabels(_Scored):
    """Rows with their class, the class a model guesses, a score, and two losses in [0, 1].

    `truth` and `guess` are codes 0..K-1. `score` ranks rows: the margin of the second of two classes, or of the
    guess among several; where it is not a number it counts as 0. `chances` are the probabilities of the classes.
    """

    def __init__(
        self,
        truth: np.ndarray,
        guess: np.ndarray,
        score: np.ndarray | None,
        chances: np.ndarray | None,
        n_classes: int,
        groups: np.ndarray | None = None,
        worth: np.ndarray | None = None,
    ) -> None:
        self._n_classes = n_classes
        units, losses = _Units.of(len(truth), groups, worth), {}
        score = None if score is None else np.where(np.isnan(score), 0.0, score)
        if chances is not None:
            log_loss, brier = np.empty(len(truth)), np.empty(len(truth))
            _losses(np.ascontiguousarray(chances, np.float64), truth, log_loss, brier)
            losses = {"log_loss": units.means(log_loss), "brier": units.means(brier)}
        self._parts = InMemory([_LabelPart(units, truth, guess, score, chances, losses)])

    def confusion(self) -> Query:
        """Rows of class j that are taken for class k, at j K + k."""
        K = self._n_classes
        return self._cells(lambda part: part.truth * K + part.guess, K**2)

    def outcomes(self) -> Query:
        """Rows with a wrong guess, and with a right one."""
        return self._cells(lambda part: (part.truth == part.guess).astype(np.intp), 2)

    def cells(self, edges: np.ndarray) -> Query:
        """Rows whose score lies in each cell (edge, next edge]."""
        return self._cells(lambda part: _bins(part, edges), len(edges) + 1)

    def histogram(self, edges: np.ndarray) -> Query:
        """The same by class (of two), or by wrong and right guess (of several)."""
        n_bins, two = len(edges) + 1, self._n_classes == 2

        def cells(part: _LabelPart) -> np.ndarray:
            hit = part.truth if two else part.truth == part.guess
            return np.asarray(hit.astype(np.intp) * n_bins + _bins(part, edges))

        return self._cells(cells, 2 * n_bins)

    def class_cells(self, edges: np.ndarray) -> Query:
        """For every class the rows whose log odds of that class lie in each cell."""
        K = self._n_classes
        return self._cells(lambda part: _class_bins(part, [edges] * K), len(edges) + 1, K)

    def class_histogram(self, edges: Sequence[np.ndarray]) -> Query:
        """The same with cuts of its own for every class, and by whether the row is of that class."""
        n_bins, K = max(len(e) for e in edges) + 1, self._n_classes

        def cells(part: _LabelPart) -> np.ndarray:
            hit = part.truth[:, None] == np.arange(K)
            return np.asarray(hit * n_bins + _class_bins(part, edges))

        return self._cells(cells, 2 * n_bins, K)

    def loss(self, name: str, power: int = 1) -> Query:
        """sum of v^power - 1/2 of a loss v in [0, 1]: "log_loss" (divided by its cut) or "brier"."""
        return self._centred(lambda part: part.losses[name] ** power)


class ScoredNumbers(_Scored):
    """Rows with an error and a target, both in [-1, 1]: errors in units of their bound, targets in theirs."""

    def __init__(
        self,
        errors: np.ndarray,
        targets: np.ndarray,
        groups: np.ndarray | None = None,
        worth: np.ndarray | None = None,
    ) -> None:
        units = _Units.of(len(errors), groups, worth)
        errors, targets = np.clip(errors, -1.0, 1.0), np.clip(targets, -1.0, 1.0)
        absolute, squares = units.means(np.abs(errors)), units.means(errors * errors)
        self._parts = InMemory([_NumberPart(units, targets, absolute, squares)])

    def absolute(self) -> Query:
        """sum of |e| - 1/2."""
        return self._centred(lambda part: part.absolute)

    def squares(self, power: int = 1) -> Query:
        """sum of s^power - 1/2, s = e^2."""
        return self._centred(lambda part: part.squares**power)

    def total(self) -> Query:
        """sum of targets."""
        return self._short(lambda part: part.units.means(part.targets), 1.0, False)

    def spread(self, centre: float, power: int = 1, cross: bool = False) -> Query:
        """sum of w^power - 1/2 (or of s w - 1/2), w = ((y - centre)/(1 + |centre|))^2."""

        def values(part: _NumberPart) -> np.ndarray:
            away = np.clip((part.targets - centre) / (1.0 + abs(centre)), -1.0, 1.0)
            squares = part.units.means(away * away)
            return np.asarray(squares * part.squares if cross else squares**power)

        return self._centred(values)


# ---- functions of one part -----------------------------------------------------------------------


def _n_units(part: _LabelPart | _NumberPart) -> int:
    return part.units.n_units


def _add_units(one: int, part: _LabelPart | _NumberPart, out: np.ndarray) -> None:
    out += np.sum(parts_of_one(part.units.worth_of_units, one))


def _add_cells(
    cells: Callable[[Any], np.ndarray], n_cells: int, most: int, part: Any, out: np.ndarray
) -> None:
    found = cells(part)
    shares = parts_of_one(part.units.worth, most) // part.units.sizes
    for k, column in enumerate(found.reshape(len(found), -1).T):
        np.add.at(out, np.clip(column, 0, n_cells - 1) + k * n_cells, shares)


def _add_short(
    values: Callable[[Any], np.ndarray],
    unit: float,
    bound: float,
    centred: bool,
    part: Any,
    out: np.ndarray,
) -> None:
    found = values(part)
    if centred:
        found = np.clip(found, 0.0, 1.0) - 0.5
    found = found * part.units.worth_of_units
    kernels.short_sum(np.ascontiguousarray(found)[:, None], unit, bound, False, out)


def _bins(part: _LabelPart, edges: np.ndarray) -> np.ndarray:
    assert part.score is not None
    return np.searchsorted(edges, part.score)


def _class_bins(part: _LabelPart, edges: Sequence[np.ndarray]) -> np.ndarray:
    assert part.chances is not None
    columns = [np.searchsorted(e, log_odds(part.chances[:, k])) for k, e in enumerate(edges)]
    return np.column_stack(columns)


def log_odds(chances: np.ndarray) -> np.ndarray:
    """log p - log(1 - p), row by row; 0 where p is not a number."""
    out = np.empty(len(chances))
    _log_odds(np.ascontiguousarray(chances, np.float64), out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _log_odds(chances, out):
    for i in range(chances.size):
        p = chances[i]
        if p != p:
            out[i] = 0.0
        elif p <= 0.0:
            out[i] = -np.inf
        elif p >= 1.0:
            out[i] = np.inf
        else:
            out[i] = math.log(p) - math.log1p(-p)


@njit(cache=True, nogil=True)
def _losses(chances, truth, log_loss, brier):
    """Both losses of every row in [0, 1]. A row of chances that are no numbers counts as even chances."""
    K = chances.shape[1]
    for i in range(chances.shape[0]):
        total = 0.0
        for k in range(K):
            total += min(max(chances[i, k], 0.0), 1.0)
        sound = 0.0 < total < np.inf
        squares = 0.0
        for k in range(K):
            p = min(max(chances[i, k], 0.0), 1.0) if sound else 1.0 / K
            if k == truth[i]:
                log_loss[i] = min(-math.log(max(p, 1e-9)) / LONGEST_LOSS, 1.0)
                squares += (1.0 - p) ** 2
            else:
                squares += p * p
        brier[i] = min(squares / 2.0, 1.0)
