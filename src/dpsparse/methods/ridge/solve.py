"""Regression on a narrow table: look at it privately, then one tilted ridge fit on weighted rows.

    look     mean of y;  cutoff c = (1 - p)-quantile of |y - mean|,  p = 1/(3 x^2),  x = max(1, N/(20 d))
             l0 = median of |x_i|;  m = mean of x_i shortened to l0, shrunk by its known noise
             v  = sum of (x_i - m)^2 shortened to l0, column by column;  D_j = (v_j/mean v)^(-1/2)
             S  = sum of z_i z_i', z_i = D (x_i - m) shortened;  A = S^(-1/2) but for what noise may be (else A = 1)
             l1 = median of |A D (x_i - m)|
    rows     f_i = (MEDIAN_LENGTH A D (x_i - m)/l1, 1),   t_i = (y_i - mean)/c,   a_i = min(1, r/|f_i|)^2
             r = x^(1/4)/.3
    fit      argmin  sum_i a_i Huber_1(f_i.theta - t_i) + ridge/2 |theta|^2 + tilt.theta

A row longer than r counts less instead of being shortened: shortened rows would pull the fit away from the model
that is used on whole rows. The square makes |gradient| <= r and curvature <= r^2 for rows of any length, so the price
of the fit needs no declared bound. Directions in which rows are long would use up that length; A makes all
directions alike, and so the noise of the fit as small as it can be: the sum of 1/eigenvalues of the Hessian is least
where they are equal. What is looked at depends on public numbers alone:

| way | when (N = rows times budget) | what is released |
|---|---|---|
| "released" | N >= 50 and N >= 2.5 sqrt d | all of the above; A where N >= 10 d |
| "declared" | else N >= 4.5 sqrt d, or N < 20, d <= 40 | the fit alone: m = 0, D = 1, l1 and c from declared bounds |
| "mean" | else | the mean of y alone: nothing else can be learnt |

Each line of "look" is a sum of whole numbers with Gaussian noise. Proof: docs/proofs/table_regression.md. Cost: a
dozen passes over n d numbers, and Newton steps on d columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpsparse import arithmetic
from dpsparse.methods.look.table import (
    Standardisation,
    declared_standardisation,
    look_at_table,
)
from dpsparse.methods.look.targets import release_mean, release_spread
from dpsparse.methods.ridge import defaults
from dpsparse.methods.solution import Solution
from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows

LONGEST = 2.0**20 * defaults.ROW_CLIP  # a row beyond has weight 0 instead of 2^-40


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public side of a run."""

    way: str  # "released" or "declared"
    looks: Mapping[str, int]  # the releases before the fit, with how many numbers each
    n_samples: int
    n_columns: int
    longest: float  # declared bound on the length of a row
    ridge: float
    row_clip: float  # r, the length from which a row counts less
    tol: float
    clipped_share: float  # of the targets: so many are farther from the mean than the cutoff
    target_bound: float
    n_nonzero: int | None = None  # weights that are kept; None keeps all

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Weights (1, d) and the intercept (1,)."""
        n, mean, cutoff = float(self.n_samples), 0.0, defaults.DECLARED_CUTOFF
        if self.way == "released":
            n, mean = release_mean(rows, releases, None if rows.weighted else self.n_samples)
            cutoff = release_spread(rows, releases, n, mean, 1.0 - self.clipped_share)
        standard = look_at_rows(rows, self, releases, n)
        stretch = standard.scaling * (typical_length(self.way) / standard.length)
        theta = fit(rows, self, standard, stretch, mean, cutoff, releases)
        if self.n_nonzero is not None:
            theta[:-1] = keep(theta[:-1], standard, self.n_nonzero)
        coef = theta[:-1] * stretch * cutoff
        intercept = mean + cutoff * theta[-1] - float(np.sum(coef * standard.centre))
        bound = self.target_bound
        return Solution(coef[None, :] * bound, np.array([intercept * bound]), 1)


def row_clip(way: str) -> float:
    """r, the length from which a row counts less; plan.py widens it where noise is small."""
    return defaults.ROW_CLIP if way == "released" else defaults.DECLARED_ROW_CLIP


def typical_length(way: str) -> float:
    """Of a standardised row without its constant."""
    return defaults.MEDIAN_LENGTH if way == "released" else 1.0


def look_at_rows(rows: Rows, settings: Settings, releases: Releases, n: float) -> Standardisation:
    """Released numbers, or what is declared."""
    if settings.way == "declared":
        return declared_standardisation(rows.n_features, settings.longest / 2.0 / math.sqrt(2.0))
    return look_at_table(rows, releases, n, settings.longest, axes="axes" in settings.looks)


def fit(
    rows: Rows,
    settings: Settings,
    standard: Standardisation,
    stretch: np.ndarray,
    mean: float,
    cutoff: float,
    releases: Releases,
) -> np.ndarray:
    """Weights of standardised columns, the weight of the constant last."""
    mapped = rows.standardised(
        standard.centre, stretch, axes=standard.axes, middle=mean, unit=cutoff
    )
    weighted = mapped.ridge(None, constant=1.0, row_clip=settings.row_clip, longest=LONGEST)
    problem = weighted.problem("huber", ridge=settings.ridge, tol=settings.tol, cutoff=1.0)
    theta = releases.tilt("fit", problem)
    if standard.axes is not None:
        theta[:-1] = np.sum(standard.axes * theta[:-1], axis=1)
    return theta


def keep(weights: np.ndarray, standard: Standardisation, k: int) -> np.ndarray:
    """The `k` largest weights on standardised rows. With released axes the rest makes up for what is dropped as far as
    these tell."""
    if standard.axes is None:
        return top_k(weights, k)
    return keep_columns_that_explain(
        weights, arithmetic.leading_bits(standard.axes @ standard.axes), k
    )


def keep_columns_that_explain(weights: np.ndarray, inverse: np.ndarray, k: int) -> np.ndarray:
    """`k` of released weights: that one is dropped, again and again, whose loss the others make up for best on rows
    with these (inverse) second moments."""
    weights, inverse, left = weights.copy(), inverse.copy(), np.arange(len(weights))
    while len(left) > k:
        costs = weights[left] ** 2 / inverse[left, left]
        j = left[np.argmin(costs)]
        column = inverse[:, j] / inverse[j, j]
        weights -= weights[j] * column
        inverse -= np.outer(column, inverse[j])
        left = left[left != j]
    out = np.zeros_like(weights)
    out[left] = weights[left]
    return out
