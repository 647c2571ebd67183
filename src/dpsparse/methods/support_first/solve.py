"""Support first: find columns privately, look at the rows on them, then fit a ridge problem. Ridge regression on a
narrow table is the same with all columns: nothing is found, and the rest is looks and one tilted fit.

Kifer, Smith, Thakurta 2012 (Two-Stage); Wang, Gu 2020 (DPSL-KT); Wang, Zhang 2020 (ADMM).

    targets  b0 = log-odds of noisy class counts, or mean and spread of the targets
    support  b  = 3/2 of a typical row's root mean square of entries
             S  = private picks of the s largest |sum_i slope_i clip(x_ij/b)|, slopes at margin b0    for every output
    look     centre, scales, axes and length of the rows on S (methods/look)
    rows     f_i = (rows on S in units of their typical length, 1),  a_i = min(1, r/|f_i|)^2
             J(theta) = sum_i a_i l(f_i.theta, y_i) + ridge/2 |theta - c|^2,  c = 0 but for ADMM
    fit      objective   argmin of J tilted by noise                    Two-Stage, ridge regression
             output      argmin of J, plus noise                        transfer without public rows
             student     noisy answers of argmin J on public rows       transfer (student.py)
             admm        T rounds: x = argmin of J around c = z - u, plus noise;  z = prox(x + u);  u = u + x - z

| symbol | variable | meaning |
|---|---|---|
| s | n_nonzero | columns of every output |
| r | row_clip | length from which a row counts less |
| T | n_iter | rounds of ADMM: a privacy parameter |

Of numbers: t_i = (y_i - mean)/c, c a quantile of |y - mean|. A row longer than r counts less instead of being
shortened: shortened rows would pull the fit away from the model that is used on whole rows. The square in a_i makes
|gradient| <= r and curvature <= r^2 for rows of any length, so the price of the fit needs no declared bound. Directions
in which rows are long would use up that length; axes make all directions alike, and so the noise of the fit as small as
it can be: the sum of 1/eigenvalues of the Hessian is least where they are equal.

With too few rows to look at (py), declared bounds take the place of b, centre, scales and length; with fewer
still the mean of y alone is released. Several classes are fitted one against the rest. Cost: one pass over the
non-zeros an output, then the fit on s columns. Deviations from the papers: blocks of rows do not vote (they find far
less at the same price), the teacher is fitted on a released support (in the paper it may switch its support when one
row changes, so its theorem is false), and every round of ADMM has fresh noise. Proofs: docs/proofs/two_stage.md,
table_regression.md, transfer.md, admm.md, ridge.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dpsparse import arithmetic
from dpsparse.losses import get_loss
from dpsparse.methods.base import Solution
from dpsparse.methods.look.rows import (
    Standardisation,
    declared_standardisation,
    look_at_table,
)
from dpsparse.methods.look.targets import (
    look_at_classes,
    release_entry_size,
    release_mean,
    release_spread,
)
from dpsparse.methods.support_first.student import learn
from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import RidgeRows, Rows

ROW_CLIP = 1.0 / 0.3  # length from which rows count less, in units of the constant entry of a row


@dataclass(frozen=True)
class SupportFirst:
    """The public side of a run."""

    fit: str  # "objective", "output", "student" or "admm"
    loss: str  # "logistic" or "huber"
    n_outputs: int
    n_nonzero: int
    n_samples: int
    way: str  # "released", or "declared" where declared bounds set all scales
    looks: Mapping[str, int]  # the releases before the fit but the support, with how many numbers
    split: float  # share of the support in what these leave; 0: all columns are taken
    feature_bound: float
    longest: float  # declared bound on the length of a row
    longest_on_support: float
    target_bound: float
    ridge: float
    row_clip: float
    clipped_share: float  # of the targets: so many are farther from the mean than the cutoff
    curvature: float  # largest of a row
    tol: float
    public_rows: sp.csc_array | None = None  # the student learns on them
    n_iter: int = 1  # rounds of ADMM
    kept: int | None = None  # weights that are kept of those that were fitted; None keeps all

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        return Run(rows, self, releases).solve()

    @property
    def of_numbers(self) -> bool:
        return get_loss(self.loss).labels == "numbers"


class Run:
    """One fit. Attributes are released or public; rows answer queries only."""

    def __init__(self, rows: Rows, settings: SupportFirst, releases: Releases) -> None:
        self.rows, self.settings, self.releases = rows, settings, releases
        self.released = settings.way == "released"
        self.n = float(settings.n_samples)
        self.share = 1.0 / settings.n_outputs  # of a phase that every output draws on
        self.priors = np.zeros(settings.n_outputs)
        self.mean, self.spread, self.cutoff = 0.0, 1.0, 1.0  # of classes
        self.columns = np.arange(rows.n_features)  # of all outputs together
        self.standard = declared_standardisation(rows.n_features, settings.longest_on_support)
        self.stretch = np.ones(rows.n_features)

    def solve(self) -> Solution:
        settings, d = self.settings, self.rows.n_features
        self.look_at_targets()
        supports = self.find_supports()
        self.columns = np.unique(np.concatenate(supports))
        if len(self.columns) < d:
            self.rows = self.rows.columns(self.columns)
        self.standard = self.look_at_rows()
        self.stretch = self.standard.scaling * (typical_length(settings.way) / self.standard.length)
        rows = self.rows.standardised(
            self.standard.centre, self.stretch, axes=self.standard.axes, middle=self.mean,
            unit=self.cutoff,
        )  # fmt: skip
        coef, intercept = np.zeros((settings.n_outputs, d)), np.zeros(settings.n_outputs)
        for k, support in enumerate(supports):
            own = np.searchsorted(self.columns, support)
            theta = self.fit_output(rows, k, own)
            if settings.kept is not None:
                theta[:-1] = keep(theta[:-1], self.standard, settings.kept)
            weights = theta[:-1] * self.stretch[own] * self.cutoff
            middle = float(np.sum(weights * self.standard.centre[own]))
            coef[k, support] = weights
            intercept[k] = self.mean + self.cutoff * theta[-1] - middle
        bound = settings.target_bound
        return Solution(coef * bound, intercept * bound, settings.n_iter)

    # ---- looks and columns ---------------------------------------------------------------------

    def look_at_targets(self) -> None:
        """Mean and spread of numbers; of classes the log-odds, one class against the rest."""
        settings, rows, releases = self.settings, self.rows, self.releases
        if settings.of_numbers:
            # Where nothing is looked at, residuals count linearly from a quarter of the declared range.
            self.spread = self.cutoff = 0.25
            if "mean" in settings.looks:
                declared = settings.n_samples if settings.looks["mean"] == 1 else None
                self.n, self.mean = release_mean(rows, releases, declared)
            if self.released:
                level = 1.0 - settings.clipped_share
                self.cutoff = release_spread(rows, releases, self.n, self.mean, level)
                self.spread = 0.82 * self.cutoff  # where columns are looked for
            return
        n_classes = max(2, settings.n_outputs)
        targets = look_at_classes(rows, releases, n_classes, settings.n_samples, None)
        odds = np.asarray(arithmetic.log(targets.counts / (targets.n - targets.counts)))
        self.priors = odds[1:] if settings.n_outputs == 1 else odds

    def find_supports(self) -> list[np.ndarray]:
        """The columns of every output: private picks of the largest sums of slope times entry, both bounded."""
        settings = self.settings
        if settings.split == 0.0:
            return [np.arange(self.rows.n_features)] * settings.n_outputs
        bound = settings.feature_bound
        if self.released:
            n = settings.n_samples
            typical = release_entry_size(self.rows, self.releases, n, bound)
            bound = min(1.5 * typical, bound)
        return [self.find_columns(k, bound) for k in range(settings.n_outputs)]

    def find_columns(self, output: int, bound: float) -> np.ndarray:
        settings, prior, slope = self.settings, self.priors[output], 1.0
        if settings.of_numbers:
            rows = self.rows.standardised_targets(self.mean, self.spread)
        else:
            rows = self.rows_of(self.rows, output)
            slope = float(arithmetic.expit(abs(prior)))
        start = np.zeros((self.rows.n_features, 1))
        sums = rows.entries(bound, settings.longest / bound).gradient(
            settings.loss, start, np.array([prior]), clip=slope, cutoff=slope
        )
        scores = sums.magnitudes(self.rows.n_features)
        unit = scores.sensitivity("add-remove").value * 2.0**-30
        return self.releases.top_k("support", scores, settings.n_nonzero, unit)

    def look_at_rows(self) -> Standardisation:
        """Released numbers, or what is declared."""
        settings, d, longest = self.settings, len(self.columns), self.settings.longest_on_support
        if not self.released:
            return declared_standardisation(d, longest / 2.0 / math.sqrt(2.0))
        axes = "axes" in settings.looks
        return look_at_table(self.rows, self.releases, self.n, longest, axes=axes)

    def rows_of(self, rows: Rows, output: int) -> Rows:
        """Targets 1 for the class of an output (the second of two) and 0 for all others."""
        if self.settings.of_numbers:
            return rows
        return rows.against_rest(1 if self.settings.n_outputs == 1 else output)

    # ---- fits ----------------------------------------------------------------------------------

    def fit_output(self, rows: Rows, output: int, own: np.ndarray) -> np.ndarray:
        """Weights of standardised columns of one output, the weight of the constant last."""
        settings = self.settings
        every = len(own) == rows.n_features
        columns = self.rows_of(rows, output).ridge(
            None if every else own, constant=1.0, row_clip=settings.row_clip,
            longest=2.0**20 * ROW_CLIP,  # a row beyond has weight 0 instead of 2^-40
        )  # fmt: skip
        if settings.fit == "admm":
            return self.alternate(columns)
        problem = columns.problem(settings.loss, ridge=settings.ridge, tol=settings.tol)
        if settings.fit == "objective":
            theta = self.releases.tilt("fit", problem)
        elif settings.fit == "output":
            theta = self.releases.gaussian("fit", problem.minimiser(), self.share)
        else:
            public = self.public_rows(own)
            query = problem.minimiser(public)
            sd = self.releases.scale("fit", query, self.share)
            answers = self.releases.gaussian("fit", query, self.share)
            theta = learn(public, answers, sd, float(self.priors[output]))
        if self.standard.axes is not None:
            theta[:-1] = np.sum(self.standard.axes * theta[:-1], axis=1)
        return theta

    def public_rows(self, own: np.ndarray) -> np.ndarray:
        """Public rows on the columns of an output, standardised as private rows are, and the constant."""
        assert self.settings.public_rows is not None
        found = np.asarray(self.settings.public_rows[:, self.columns[own]].toarray(), np.float64)
        found = (found - self.standard.centre[own]) * self.stretch[own]
        if self.standard.axes is not None:
            found = arithmetic.leading_bits(found @ self.standard.axes, 24)
        return np.column_stack([found, np.ones(len(found))])

    def alternate(self, columns: RidgeRows) -> np.ndarray:
        """The sparse z after all rounds; the constant is not shrunk."""
        settings = self.settings
        z, u = np.zeros(columns.width), np.zeros(columns.width)
        share = self.share / settings.n_iter
        for _ in range(settings.n_iter):
            problem = columns.problem(
                settings.loss, ridge=settings.ridge, tol=settings.tol, centre=z - u
            )
            query = problem.minimiser()
            noise = self.releases.scale("fit", query, share)
            x = self.releases.gaussian("fit", query, share)
            moved = x + u
            threshold = admm_threshold(noise)
            z = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0.0)
            z[-1] = moved[-1]
            u = moved - z
        return z


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


def typical_length(way: str) -> float:
    """Of a standardised row without its constant, in the same unit."""
    return math.sqrt(0.91) / 0.3 if way == "released" else 1.0


def admm_threshold(noise: float) -> float:
    """What the noise of one round exceeds seldom; where there is none, next to nothing."""
    return max(3.0 * noise, 1e-3)
