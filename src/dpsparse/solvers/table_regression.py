"""Regression on a narrow table: look at it privately, then one tilted ridge fit on weighted rows.

    find     (few of many columns) b = 3/2 of a typical row's root mean square of entries, e
             S = private picks of the largest |sum_i clip((y_i - mean)/.7 q) clip(x_ij/b)|; what follows is on S
    look     mean of y;  q = .75-quantile of |y - mean|, cutoff c = q, .8 q or 1.5 q
             l0 = median of |x_i|;  m = mean of x_i shortened to l0, shrunk by its known noise
             v  = sum of (x_i - m)^2 shortened to l0, column by column;  D_j = (v_j/mean v)^(-1/2)
             S  = sum of z_i z_i', z_i = D (x_i - m) shortened;  A = S^(-1/2) but for what noise may be (else A = 1)
             l1 = median of |A D (x_i - m)|
             where l0 < e/2 most rows are empty on S: m = 0, A = D = 1, l1 the bound of an entry
    rows     f_i = (LENGTH A D (x_i - m)/l1, 1),   t_i = (y_i - mean)/c,   a_i = min(1, r/|f_i|)^2
    fit      argmin  sum_i a_i Huber_1(f_i.theta - t_i) + ridge/2 |theta|^2 + tilt.theta

A row longer than r counts less instead of being shortened: shortened rows would pull the fit away from the model
that is used on whole rows. The square makes |gradient| <= r and curvature <= r^2 for rows of any length, so the price
of the fit needs no declared bound. Directions in which rows are long would use up that length; A makes all
directions alike, and so the noise of the fit as small as it can be: the sum of 1/eigenvalues of the Hessian is least
where they are equal. What is looked at depends on public numbers alone:

| way | when (N = rows times budget) | what is released |
|---|---|---|
| "released" | N >= 50 and N >= 2.5 sqrt d | all of the above; D to 100 columns, A where N >= 10 d |
| "declared" | else N >= 4.5 sqrt d, or N < 20, d <= 40 | the fit alone: m = 0, D = 1, l1 and c from declared bounds |
| "mean" | else | the mean of y alone: nothing else can be learnt |

Each line of "look" is a sum of whole numbers with Gaussian noise. Proof: docs/proofs/table_regression.md. Cost: a
dozen passes over n d numbers, and Newton steps on d columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.solvers.look import Look, leading_digits
from dpsparse.solvers.peeling import peel
from dpsparse.solvers.solution import Solution

ROW_CLIP = 1.0 / 0.3  # lengths in units of the constant entry of a row
LENGTH = math.sqrt(0.91) / 0.3  # of a row of median length
LONGEST = 2.0**20 * ROW_CLIP  # a row beyond has weight 0 instead of 2^-40
DECLARED_CLIP = math.sqrt(2.0)
MOST_COLUMNS, MOST_ENTRIES = 1500, 10**8  # of a table that is fitted at once
FIND_CUTOFF = 0.7  # of q: where targets are cut that columns are found by
ENTRY = 1.5  # where entries are, in units of the root mean square of a typical row
SHORT = 0.5  # of a typical entry: a median row that is shorter has no entry on the columns found
HALVINGS = 8  # below the declared bound that size is sought


@dataclass(frozen=True)
class Find:
    """The public side of columns that are found before they are fitted."""

    n_columns: int
    feature_bound: float
    longest: float  # declared bound on the length of a row on all columns
    split: float  # its share of what scales of the targets and entries leave


@dataclass(frozen=True)
class TableRegression:
    """The public side of a run."""

    way: str  # "released", "declared" or "mean"
    n_samples: int
    longest: float  # declared bound on the length of a row
    ridge: float
    tol: float
    scale_columns: bool
    target_bound: float
    cutoff: float = 1.0  # of q
    turn: bool = False  # whether directions are released
    find: Find | None = None  # which columns are fitted; None takes all
    output: bool = False  # the minimiser itself gets the noise, instead of its objective
    n_nonzero: int | None = None  # weights that are kept; None keeps all


def row_clip(way: str) -> float:
    """r, the length from which a row counts less."""
    return ROW_CLIP if way == "released" else DECLARED_CLIP


def solve(rows: Rows, public: TableRegression, releases: Releases) -> Solution:
    """Weights (1, d) and the intercept (1,)."""
    return Run(rows, public, releases).solve()


class Run(Look):
    """One fit. Attributes are released or public; rows answer queries only."""

    def __init__(self, rows: Rows, public: TableRegression, releases: Releases) -> None:
        super().__init__(
            rows, releases, n_samples=public.n_samples, longest=public.longest,
            scale_columns=public.scale_columns, turn=public.turn,
        )  # fmt: skip
        self.public = public
        self.least = (
            0.0  # below it the median length is that of rows that are empty on the columns found
        )

    def solve(self) -> Solution:
        public, way = self.public, self.public.way
        if way != "declared":
            self.release_mean(alone=way == "mean")
        n_features, support = self.rows.n_features, None
        if way == "released":
            self.release_spread(public.cutoff)
        if public.find is not None:
            support = self.find_columns(public.find)
            self.take_columns(support)
        theta = np.zeros(self.rows.n_features + 1)
        stretch = self.scaling
        if way != "mean":
            if way == "released":
                self.look_at_rows()
                if public.find is not None and self.median < self.least:
                    self.take_bounds(public.find)
            stretch = self.scaling * ((LENGTH if way == "released" else 1.0) / self.length)
            theta = self.fit(stretch)
            if public.n_nonzero is not None:
                theta = self.keep(theta, public.n_nonzero)
        bound = public.target_bound
        coef = theta[:-1] * stretch * self.cutoff
        intercept = self.mean + self.cutoff * theta[-1] - float(np.sum(coef * self.centre))
        weights = np.zeros(n_features)
        weights[slice(None) if support is None else support] = coef * bound
        return Solution(weights[None, :], np.array([intercept * bound]), 1)

    def find_columns(self, find: Find) -> np.ndarray:
        """The columns whose entries go with the targets: private picks of the largest |sum_i s_i e_ij|, where s_i is
        the target in units of FIND_CUTOFF q and e_ij the entry in units of b, both cut to [-1, 1]."""
        bound = find.feature_bound
        typical = self.quantile("entry", self.rows.count_small, 0.5, bound / 2.0**HALVINGS, bound)
        bound = min(ENTRY * typical, bound)
        self.least = SHORT * typical
        cutoff = FIND_CUTOFF / self.public.cutoff * self.cutoff
        rows = self.rows.standardised_targets(self.mean, cutoff)
        longest, start = find.longest / bound, np.zeros((self.rows.n_features, 1))
        sums = rows.entries(bound, longest).gradient(
            "huber", start, np.zeros(1), clip=1.0, cutoff=1.0
        )
        found = peel(
            self.releases, sums, start, find.n_columns, norm_bound=longest, picks="support",
            values=None,
        )  # fmt: skip
        return found[0]

    def take_bounds(self, find: Find) -> None:
        """Most rows are empty on the columns found (of a category each, or rare words): the median row tells nothing of
        the others, which may be as long as the bound of an entry."""
        d = self.rows.n_features
        self.centre, self.scaling, self.axes = np.zeros(d), np.ones(d), None
        self.length = min(find.feature_bound, self.longest)

    def fit(self, stretch: np.ndarray) -> np.ndarray:
        """Weights of standardised columns, the weight of the constant last."""
        public = self.public
        rows = self.rows.standardised(
            self.centre, stretch, axes=self.axes, middle=self.mean, unit=self.cutoff
        ).ridge(None, constant=1.0, row_clip=row_clip(public.way), longest=LONGEST, squared=True)
        problem = rows.problem("huber", ridge=public.ridge, tol=public.tol, cutoff=1.0)
        if public.output:
            theta = self.releases.gaussian("fit", problem.minimiser())
        else:
            theta = self.releases.tilt("fit", problem)
        if self.axes is not None:
            theta[:-1] = np.sum(self.axes * theta[:-1], axis=1)
        return theta

    def keep(self, theta: np.ndarray, k: int) -> np.ndarray:
        """`k` columns: the largest weights on standardised rows. With released axes the rest makes up for what is
        dropped as far as these tell."""
        if self.axes is not None:
            inverse = leading_digits(self.axes @ self.axes)
            return np.append(dropped(theta[:-1], inverse, k), theta[-1])
        return np.append(top_k(theta[:-1], k), theta[-1])


def dropped(weights: np.ndarray, inverse: np.ndarray, k: int) -> np.ndarray:
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
