"""Frank-Wolfe as a private solver: where margins start, signed vertices, and perhaps a private count of weights.

    offset  = log-odds of noisy class counts, if the plan pays for them                             released
    history = T signed vertices, each drawn by the exponential mechanism on whole-number scores     released
    weights = a function of the history                                                            post-processing

What a row adds to a score is a whole number of at most `resolution`, whatever its floats are
(docs/proofs/fast_frank_wolfe.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpsparse import arithmetic
from dpsparse.domain import Domain
from dpsparse.losses import Loss
from dpsparse.methods.frank_wolfe.problem import Problem, choose_resolution
from dpsparse.methods.frank_wolfe.scales import Scales, release_scales
from dpsparse.methods.frank_wolfe.steps import Steps
from dpsparse.methods.solution import Solution
from dpsparse.nonzeros import NNonzero, PrivateCount, keep_nonzeros, top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.sensitivity import vertex_score_range

MIN_SHARE = 1e-3  # a class is never taken to be rarer than this
MADE_UP = 3.0  # rows of every class that are made up, in standard deviations of the noisy counts
COUNT_STEPS = 5000  # noiseless steps behind a `PrivateCount` (Khanna, Lu and Raff use 50,000)


@dataclass(frozen=True)
class Ball:
    """The public side of a fit."""

    loss: Loss
    radius: float
    n_iter: int
    slope_bound: float
    resolution: (
        int  # units a row may add to a score; without noise as fine as the number of rows allows
    )
    feature_bound: float = 1.0
    n_outputs: int = 1
    fit_intercept: bool = True
    n_nonzero: NNonzero = None
    prior: bool = False  # whether the plan pays for class counts, from which margins start
    offset: tuple[float, ...] = ()  # where they start: released, or nothing
    scales: Scales | None = (
        None  # what is released of bound, radius, loss and slopes; None: as they stand here
    )

    def problem(self, kappa: float, n_rows: int | None) -> Problem:
        """What the kernel is told; `n_rows` only where it is public."""
        resolution = self.resolution
        if math.isinf(kappa):  # nothing to hide: the rows may choose the units
            resolution = max(choose_resolution(max(n_rows or 1, 1), 0.0), 2**16)
        return Problem(
            loss=self.loss, radius=self.radius, n_iter=self.n_iter, kappa=kappa,
            slope_bound=self.slope_bound, resolution=resolution, feature_bound=self.feature_bound,
            n_outputs=self.n_outputs, fit_intercept=self.fit_intercept, offset=self.offset,
        )  # fmt: skip

    def starting_from(self, offset: tuple[float, ...], domain: Domain) -> Ball:
        """The same from a released offset: larger margins have larger slopes."""
        bound = self.loss.slope_bound(domain, self.radius, offset)
        return replace(self, prior=False, offset=offset, slope_bound=bound)

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        return solve(rows, self, releases)


def solve(rows: Rows, public: Ball, releases: Releases) -> Solution:
    """Weights (K, d) and intercepts (K,) of the ball's private vertices."""
    if public.scales is not None:
        mapped, ball, back = release_scales(rows, public, public.scales, releases)
        found = solve(mapped, ball, releases)
        coef, intercept = back(found.coef, found.intercept)
        return found._replace(coef=coef, intercept=intercept)
    if public.prior:
        public = public.starting_from(release_offset(rows, public, releases), rows.domain)
    # A person is a group of rows, each of which moves every score (docs/proofs/persons.md).
    moved = partial(
        vertex_score_range, float(rows.rows_per_unit), public.slope_bound, public.feature_bound
    )
    kappa = releases.kappa("vertices", moved)
    steps = Steps(rows, public.problem(kappa, releases.number_of_rows(rows)))
    coef, intercept = releases.vertices("vertices", steps, public.n_iter).weights()
    return Solution(sparse(coef, rows, public, releases), intercept, public.n_iter)


def release_offset(rows: Rows, public: Ball, releases: Releases) -> tuple[float, ...]:
    """Log-odds of the classes by noisy counts, drawn to even odds where there is more noise than rows.

    The constant column would have to chase them: a pick that touches every row, again and again.
    """
    query = rows.class_counts(max(2, public.n_outputs))
    counts = releases.gaussian("prior", query) + MADE_UP * releases.scale("prior", query)
    share = np.maximum(counts, 1.0)
    share = np.clip(share / share.sum(), MIN_SHARE, 1.0 - MIN_SHARE)
    odds = arithmetic.log(share)
    odds = odds[1:] - odds[:1] if public.n_outputs == 1 else odds - odds.mean()
    return tuple(float(b) for b in odds)


def sparse(coef: np.ndarray, rows: Rows, public: Ball, releases: Releases) -> np.ndarray:
    """The weights to keep, by the rule of the plan; a private count reads the rows once more."""
    rule = public.n_nonzero
    if not isinstance(rule, PrivateCount):
        return keep_nonzeros(coef, rule)
    noiseless = replace(
        public,
        n_iter=COUNT_STEPS,
        n_nonzero=None,
    )

    def exact(silent: Releases) -> int:
        return int(np.count_nonzero(solve(rows, noiseless, silent).coef))

    return top_k(coef, releases.count("number of weights", rule, exact, coef.size))
