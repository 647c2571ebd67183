"""What a public model says about private rows, and the sums that an evaluation may ask for.

    a cell of a row      1 in its cell; of a person: the share of their rows in each cell      >= 0, norm at most 1
    a cell of each of K  the same K times, side by side                                        norm at most sqrt K
    v in [0, 1]          v - 1/2; of a person: the mean of their rows                          at most 1/2
    v in [-1, 1]         v; of a person: the mean of their rows                                at most 1

`groups` names the person of every row, and a person then counts as one row does without it: the same bounds,
whatever the number of their rows. A row of a person with k rows adds floor(F/k) to its cell, F = floor(1/unit):
k such numbers add up to at most F, in integers. Means are made before they are truncated, once for each person
(docs/proofs/evaluation.md). Scores come from outside; everything computed from them here is done row by row
with scalar arithmetic, so that what one row adds does not depend on where in the table it stands.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from dpsparse.jit import njit
from dpsparse.rows import kernels
from dpsparse.rows.query import Query, units_in_one
from dpsparse.sensitivity import Sensitivity, count_below, feature_masses, signed_sum

LONGEST_LOSS = 6.0  # log loss of a row is cut here: a probability of .0025


class _Scored:
    """Rows, or persons, that contribute one bounded vector each; private."""

    def __init__(self, n_rows: int, groups: np.ndarray | None) -> None:
        self._person = None
        self._n_units = n_rows
        self._sizes = np.ones(n_rows, np.int64)  # of the person of each row
        if groups is not None:
            _, self._person = np.unique(groups, return_inverse=True)
            counts = np.bincount(self._person)
            self._n_units = len(counts)
            self._sizes = counts.astype(np.int64)[self._person]

    def __len__(self) -> int:
        """Rows or persons; private under add-remove, see `Releases.number_of_rows`."""
        return self._n_units

    def count(self) -> Query:
        """How many rows or persons there are; public under replace-one, so never asked for there."""

        def whole(unit: float) -> np.ndarray:
            return np.array([len(self)], np.int64) * units_in_one(unit)

        return Query((1,), count_below, whole)

    def _cells(self, cells: np.ndarray, n_cells: int) -> Query:
        """How many rows fall into each of `n_cells` cells; with a cell in each of K columns, into each of K n_cells."""
        cells = cells.reshape(len(cells), -1)
        K = cells.shape[1]

        def whole(unit: float) -> np.ndarray:
            out = np.zeros(K * n_cells, np.int64)
            shares = int(kernels.SAFE / unit) // self._sizes  # sqrt K may be rounded down
            for k in range(K):
                np.add.at(out, np.clip(cells[:, k], 0, n_cells - 1) + k * n_cells, shares)
            return out

        return Query((K * n_cells,), partial(feature_masses, math.sqrt(K)), whole)

    def _means(self, values: np.ndarray) -> np.ndarray:
        """One number for each row, or the mean of each person's; added in the order of their rows."""
        if self._person is None:
            return values
        totals = np.bincount(self._person, weights=values, minlength=self._n_units)
        return np.asarray(totals / np.bincount(self._person, minlength=self._n_units))

    def _centred(self, values: np.ndarray) -> Query:
        """sum of v - 1/2 over numbers in [0, 1]."""
        return _short(np.clip(values, 0.0, 1.0) - 0.5, 0.5, partial(signed_sum, 0.5))


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
    ) -> None:
        super().__init__(len(truth), groups)
        self._truth, self._guess, self._n_classes = truth, guess, n_classes
        self._score = None if score is None else np.where(np.isnan(score), 0.0, score)
        self._chances = chances
        if chances is not None:
            log_loss, brier = np.empty(len(truth)), np.empty(len(truth))
            _losses(np.ascontiguousarray(chances, np.float64), truth, log_loss, brier)
            self._losses = {"log_loss": self._means(log_loss), "brier": self._means(brier)}

    def confusion(self) -> Query:
        """Rows of class j that are taken for class k, at j K + k."""
        return self._cells(self._truth * self._n_classes + self._guess, self._n_classes**2)

    def outcomes(self) -> Query:
        """Rows with a wrong guess, and with a right one."""
        return self._cells((self._truth == self._guess).astype(np.intp), 2)

    def cells(self, edges: np.ndarray) -> Query:
        """Rows whose score lies in each cell (edge, next edge]."""
        return self._cells(self._bins(edges), len(edges) + 1)

    def histogram(self, edges: np.ndarray) -> Query:
        """The same by class (of two), or by wrong and right guess (of several)."""
        hit = self._truth if self._n_classes == 2 else self._truth == self._guess
        n_bins = len(edges) + 1
        return self._cells(hit.astype(np.intp) * n_bins + self._bins(edges), 2 * n_bins)

    def class_cells(self, edges: np.ndarray) -> Query:
        """For every class the rows whose log odds of that class lie in each cell."""
        return self._cells(self._class_bins([edges] * self._n_classes), len(edges) + 1)

    def class_histogram(self, edges: Sequence[np.ndarray]) -> Query:
        """The same with cuts of its own for every class, and by whether the row is of that class."""
        n_bins = max(len(e) for e in edges) + 1
        hit = self._truth[:, None] == np.arange(self._n_classes)
        return self._cells(hit * n_bins + self._class_bins(edges), 2 * n_bins)

    def loss(self, name: str, power: int = 1) -> Query:
        """sum of v^power - 1/2 of a loss v in [0, 1]: "log_loss" (divided by its cut) or "brier"."""
        return self._centred(self._losses[name] ** power)

    def _bins(self, edges: np.ndarray) -> np.ndarray:
        assert self._score is not None
        return np.searchsorted(edges, self._score)

    def _class_bins(self, edges: Sequence[np.ndarray]) -> np.ndarray:
        assert self._chances is not None
        columns = [np.searchsorted(e, log_odds(self._chances[:, k])) for k, e in enumerate(edges)]
        return np.column_stack(columns)


class ScoredNumbers(_Scored):
    """Rows with an error and a target, both in [-1, 1]: errors in units of their bound, targets in theirs."""

    def __init__(
        self, errors: np.ndarray, targets: np.ndarray, groups: np.ndarray | None = None
    ) -> None:
        super().__init__(len(errors), groups)
        errors, self._targets = np.clip(errors, -1.0, 1.0), np.clip(targets, -1.0, 1.0)
        self._absolute, self._squares = self._means(np.abs(errors)), self._means(errors * errors)

    def absolute(self) -> Query:
        """sum of |e| - 1/2."""
        return self._centred(self._absolute)

    def squares(self, power: int = 1) -> Query:
        """sum of s^power - 1/2, s = e^2."""
        return self._centred(self._squares**power)

    def total(self) -> Query:
        """sum of targets."""
        return _short(self._means(self._targets), 1.0, partial(signed_sum, 1.0))

    def spread(self, centre: float, power: int = 1, cross: bool = False) -> Query:
        """sum of w^power - 1/2 (or of s w - 1/2), w = ((y - centre)/(1 + |centre|))^2."""
        away = np.clip((self._targets - centre) / (1.0 + abs(centre)), -1.0, 1.0)
        squares = self._means(away * away)
        return self._centred(squares * self._squares if cross else squares**power)


def _short(values: np.ndarray, bound: float, lemma: Callable[[str], Sensitivity]) -> Query:
    def whole(unit: float) -> np.ndarray:
        out = np.zeros(1, np.int64)
        kernels.short_sum(np.ascontiguousarray(values)[:, None], unit, bound, False, out)
        return out

    return Query((1,), lemma, whole)


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
