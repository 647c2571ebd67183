"""What a public model says about private rows, and the sums that an evaluation may ask for.

    a cell of a row      1 in its cell; of a person: the share of their rows in each cell      >= 0, norm at most 1
    v in [0, 1]          v - 1/2; of a person: the mean of their rows                          at most 1/2
    v in [-1, 1]         v; of a person: the mean of their rows                                at most 1

`groups` names the person of every row, and a person then counts as one row does without it: the same bounds,
for any number of rows. Means are made before they are truncated, once for each person (docs/proofs/evaluation.md). A
row of weight w in [0, 1] adds that part of what it would add; the weight of a person is the mean of those of their
rows, and what a person says is a weighted mean (docs/proofs/weights.md).
Scores come from outside; everything computed from them here is done row by row with scalar arithmetic, so that what
one row adds does not depend on where in the table it stands.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpsparse.domain.clipping import TINY, by_person
from dpsparse.jit import njit
from dpsparse.rows.parts import InMemory, Numbers, Parts, Query, cells, count, short_sum
from dpsparse.rows.persons import means
from dpsparse.sensitivity import feature_masses, signed_sum

LONGEST_LOSS = 6.0  # log loss of a row is cut here: a probability of .0025


@dataclass(frozen=True, eq=False)
class _Part:
    """Scored rows, sorted by person where they have persons."""

    starts: np.ndarray | None
    worth: np.ndarray | None
    truth: np.ndarray  # class codes, or targets

    def of_units(self, values: np.ndarray) -> np.ndarray:
        """One number for each row, or the weighted mean of each person's."""
        if self.starts is None:
            return values
        worth = np.ones(len(values)) if self.worth is None else self.worth.astype(np.float64)
        totals = means(self.starts, np.column_stack([worth * values, worth]))
        return np.asarray(totals[:, 0] / np.maximum(totals[:, 1], TINY))


@dataclass(frozen=True, eq=False)
class _LabelPart(_Part):
    guess: np.ndarray
    score: np.ndarray | None
    losses: Mapping[str, np.ndarray]  # of the units


@dataclass(frozen=True, eq=False)
class _NumberPart(_Part):
    errors: np.ndarray


class _Scored:
    """Rows, or persons, that contribute one bounded vector each; private. Queries are made of public facts: rows are
    read when one is asked."""

    _parts: Parts

    def __len__(self) -> int:
        """Rows or persons; private under add-remove, see `Releases.number_of_rows`."""
        return sum(self._parts.collect(_n_units))

    def count(self) -> Query:
        """How many rows or persons there are; public under replace-one, so never asked for there."""
        return count(self._parts, _all)

    def _cells(self, places: Callable[[Any], np.ndarray], n_cells: int) -> Query:
        """How many rows fall into each of `n_cells` cells."""
        return cells(self._parts, places, 1, n_cells, partial(feature_masses, 1.0), (n_cells,))

    def _centred(self, values: Callable[[Any], np.ndarray]) -> Query:
        """sum of v - 1/2 over numbers in [0, 1], one of every unit."""
        return self._short(lambda part: np.clip(values(part), 0.0, 1.0) - 0.5, 0.5)

    def _short(self, values: Callable[[Any], np.ndarray], bound: float) -> Query:
        units = self._parts.map(partial(_of_units, values))
        return short_sum(units, _column, 1, bound, partial(signed_sum, bound))


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
        groups: Any = None,
        worth: np.ndarray | None = None,
    ) -> None:
        self._n_classes = n_classes
        score = None if score is None else np.where(np.isnan(score), 0.0, score)
        order, starts, worth = _by_unit(len(truth), groups, worth)
        truth, guess = truth[order], guess[order]
        score = None if score is None else score[order]
        losses: dict[str, np.ndarray] = {}
        if chances is not None:
            chances = np.ascontiguousarray(chances[order], np.float64)
            log_loss, brier = np.empty(len(truth)), np.empty(len(truth))
            _losses(chances, truth, log_loss, brier)
            of_units = _Part(starts, worth, truth).of_units
            losses = {"log_loss": of_units(log_loss), "brier": of_units(brier)}
        self._parts = InMemory([_LabelPart(starts, worth, truth, guess, score, losses)])

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

        def places(part: _LabelPart) -> np.ndarray:
            hit = part.truth if two else part.truth == part.guess
            return np.asarray(hit.astype(np.intp) * n_bins + _bins(part, edges))

        return self._cells(places, 2 * n_bins)

    def loss(self, name: str, power: int = 1) -> Query:
        """sum of v^power - 1/2 of a loss v in [0, 1]: "log_loss" (divided by its cut) or "brier"."""
        return self._centred(lambda part: part.losses[name] ** power)


class ScoredNumbers(_Scored):
    """Rows with an error and a target, both in [-1, 1]: errors in units of their bound, targets in theirs."""

    def __init__(
        self,
        errors: np.ndarray,
        targets: np.ndarray,
        groups: Any = None,
        worth: np.ndarray | None = None,
    ) -> None:
        order, starts, worth = _by_unit(len(errors), groups, worth)
        errors, targets = np.clip(errors[order], -1.0, 1.0), np.clip(targets[order], -1.0, 1.0)
        self._parts = InMemory([_NumberPart(starts, worth, targets, errors)])

    def absolute(self) -> Query:
        """sum of |e| - 1/2."""
        return self._centred(lambda part: part.of_units(np.abs(part.errors)))

    def squares(self, power: int = 1) -> Query:
        """sum of s^power - 1/2, s = e^2."""
        return self._centred(lambda part: part.of_units(part.errors**2) ** power)

    def total(self) -> Query:
        """sum of targets."""
        return self._short(lambda part: part.of_units(part.truth), 1.0)

    def spread(self, centre: float, power: int = 1, cross: bool = False) -> Query:
        """sum of w^power - 1/2 (or of s w - 1/2), w = ((y - centre)/(1 + |centre|))^2."""

        def values(part: _NumberPart) -> np.ndarray:
            away = np.clip((part.truth - centre) / (1.0 + abs(centre)), -1.0, 1.0)
            squares = part.of_units(away * away)
            return squares * part.of_units(part.errors**2) if cross else squares**power

        return self._centred(values)


# ---- functions of one part -----------------------------------------------------------------------


def _by_unit(
    n_rows: int, groups: Any, worth: np.ndarray | None
) -> tuple[np.ndarray | slice, np.ndarray | None, np.ndarray | None]:
    """An order of the rows in which those of a person are adjacent, where each person begins, and the weights."""
    if groups is None:
        return slice(None), None, worth
    order, starts = by_person(groups, n_rows)
    return order, starts, None if worth is None else worth[order]


def _n_units(part: _Part) -> int:
    return len(part.truth) if part.starts is None else len(part.starts) - 1


def _all(part: _Part) -> np.ndarray:
    return np.ones(len(part.truth), bool)


def _of_units(values: Callable[[Any], np.ndarray], part: _Part) -> Numbers:
    """One number of every row or person, and how much it counts."""
    worth = part.worth
    if worth is not None and part.starts is not None:
        worth = means(part.starts, worth[:, None])[:, 0]
    return Numbers(values(part), None, worth)


def _column(part: Numbers) -> np.ndarray:
    return np.ascontiguousarray(part.values)[:, None]


def _bins(part: _LabelPart, edges: np.ndarray) -> np.ndarray:
    assert part.score is not None
    return np.searchsorted(edges, part.score)


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
