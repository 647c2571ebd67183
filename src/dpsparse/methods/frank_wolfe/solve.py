"""Frank-Wolfe as a private solver.

    scales  bound of entries, and of numbers mean and cutoff, where nobody declared them             released
    offset  log-odds of noisy class counts, from which the margins of a classifier start             released
    picks   T signed vertices, each drawn by the exponential mechanism on whole-number scores        released
    weights = a function of the picks                                                                post-processing

    "table"     x <- D (x - m) sqrt(d)/l, entries of typical size one (methods/look/table.py), clipped to 1.5
    "entries"   b = median over the rows of |x_i|/sqrt(non-zeros of x_i), by noisy counts; the kernel cuts entries to b
    numbers     y <- (y - mean)/c, Huber's loss with cutoff 1: slopes have a bound for any ball
    ball        radius reach/b: margins of at most `reach`, in cutoffs

Noise is proportional to b times the largest slope. A declared bound is that of the largest entry there may ever be;
the sums that a pick must see are made of typical ones. What a row adds to a score is a whole number of at most
`resolution`, for any floats. Proofs: docs/proofs/frank_wolfe.md, docs/proofs/fast_frank_wolfe.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from dpsparse import arithmetic
from dpsparse.losses import Huber, Loss
from dpsparse.methods.frank_wolfe import defaults
from dpsparse.methods.frank_wolfe.problem import Problem, Units, choose_resolution
from dpsparse.methods.frank_wolfe.run import Steps
from dpsparse.methods.frank_wolfe.screening import picked_beyond_chance
from dpsparse.methods.look.defaults import CUTOFF_PER_SPREAD
from dpsparse.methods.look.table import look_at_table, release_entry_size
from dpsparse.methods.look.targets import contrasts, release_mean, release_spread
from dpsparse.methods.solution import Solution
from dpsparse.nonzeros import NNonzero, PrivateCount, keep_nonzeros, top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.sensitivity import vertex_score_range


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public side of a fit. Loss, radius and bounds are those of declared scales; released ones replace them."""

    loss: Loss
    radius: float
    feature_bound: float
    slope_bound: float
    n_iter: int
    n_outputs: int
    fit_intercept: bool
    n_nonzero: NNonzero
    looks: Mapping[str, int]  # releases before the steps, with how many numbers each
    n_samples: int | None  # declared
    longest: float  # declared bound on the length of a row
    reach: float  # largest margin of the ball on released scales
    level: float | None  # of screening

    @property
    def scales(self) -> str:
        """Where the scales come from: "declared", or what is released of them."""
        if "entry" in self.looks:
            return "entries"
        return "table" if "centre" in self.looks else "declared"

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Weights (K, d) and intercepts (K,) of the ball's private vertices."""
        scaled = release_scales(rows, self, releases)
        problem = make_problem(scaled, self, releases)
        history = releases.vertices("vertices", Steps(scaled.rows, problem), self.n_iter)
        coef, intercept = history.weights()
        if self.level is not None:
            coef = np.where(picked_beyond_chance(history, self.level), coef, 0.0)
        coef = keep_weights(coef, scaled.rows, problem, self.n_nonzero, releases)
        coef, intercept = scaled.units.publish(coef, intercept)
        middle = scaled.units.middle + rows.domain.target_middle  # of a declared range
        path = replace(history, units=replace(scaled.units, middle=middle))
        return Solution(coef, intercept, self.n_iter, history=path)


@dataclass(frozen=True)
class ScaledRows:
    """Rows as the steps see them, the ball on them, and the way back; all but the rows is released or public."""

    rows: Rows
    loss: Loss
    radius: float
    feature_bound: float
    units: Units = field(default_factory=Units)


def release_scales(rows: Rows, settings: Settings, releases: Releases) -> ScaledRows:
    """Rows on declared scales, or on released ones."""
    declared = ScaledRows(rows, settings.loss, settings.radius, settings.feature_bound)
    if settings.scales == "declared":
        return declared
    n, target = float(settings.n_samples or 0), 1.0
    if of_numbers := "mean" in settings.looks:
        _, middle = release_mean(rows, releases, settings.n_samples)
        unit = CUTOFF_PER_SPREAD * release_spread(rows, releases, n, middle)
        target = rows.domain.target_bound or 1.0  # kernels have targets in units of their bound
        units = Units(middle=middle * target, unit=unit)
        declared = replace(declared, loss=Huber(target), units=units)
    if settings.scales == "table":
        look = look_at_table(rows, releases, n, settings.longest)
        stretch = look.scaling * (math.sqrt(rows.n_features) / look.length)
        rows = rows.standardised(look.centre, stretch, middle=middle, unit=unit)
        bound = defaults.CLIPPED_ENTRY_PER_TYPICAL
        units = replace(declared.units, stretch=stretch, centre=look.centre)
        declared = replace(declared, units=units)
    else:
        bound = release_entry_size(rows, releases, n, settings.feature_bound)
        rows = rows.standardised_targets(middle, unit) if of_numbers else rows
    radius = settings.reach * target / bound
    return replace(declared, rows=rows.bounded(bound), radius=radius, feature_bound=bound)


def make_problem(scaled: ScaledRows, settings: Settings, releases: Releases) -> Problem:
    """What the kernel is told: public and released numbers."""
    rows, bound = scaled.rows, scaled.feature_bound
    offset: tuple[float, ...] = ()
    if "prior" in settings.looks:
        offset = release_offset(rows, max(2, settings.n_outputs), releases)
    slope_bound = scaled.loss.slope_bound(rows.domain, scaled.radius, offset)
    # A person is a group of rows, each of which moves every score (docs/proofs/persons.md).
    moved = partial(vertex_score_range, float(rows.rows_per_unit), slope_bound, bound)
    kappa = releases.kappa("vertices", moved)
    if math.isinf(kappa):
        resolution = resolution_without_noise(releases.number_of_rows(rows))
    else:
        resolution = choose_resolution(settings.n_samples, 4.0 * kappa * bound * slope_bound)
    return Problem(
        loss=scaled.loss, radius=scaled.radius, n_iter=settings.n_iter, kappa=kappa,
        slope_bound=slope_bound, resolution=resolution, feature_bound=bound,
        n_outputs=settings.n_outputs, fit_intercept=settings.fit_intercept, offset=offset,
    )  # fmt: skip


def resolution_without_noise(n_rows: int | None) -> int:
    """Nothing is hidden, so the rows may choose the units."""
    return max(choose_resolution(max(n_rows or 1, 1), 0.0), 2**16)


def release_offset(rows: Rows, n_classes: int, releases: Releases) -> tuple[float, ...]:
    """Log-odds of the classes by noisy counts, drawn to even odds where there is more noise than rows.

    The constant column would have to chase them: a pick that touches every row, again and again.
    """
    query = rows.class_counts(n_classes)
    added = defaults.ADDED_ROWS_PER_NOISE * releases.scale("prior", query)
    share = np.maximum(releases.gaussian("prior", query) + added, 1.0)
    least = defaults.MIN_CLASS_SHARE
    share = np.clip(share / share.sum(), least, 1.0 - least)
    return tuple(float(b) for b in contrasts(arithmetic.log(share)))


def keep_weights(
    coef: np.ndarray, rows: Rows, problem: Problem, rule: NNonzero, releases: Releases
) -> np.ndarray:
    """The weights to keep, by the rule of the plan; a private count reads the rows once more."""
    if not isinstance(rule, PrivateCount):
        return keep_nonzeros(coef, rule)

    def count_without_noise(silent: Releases) -> int:
        resolution = resolution_without_noise(silent.number_of_rows(rows))
        steps = defaults.COUNT_STEPS
        exact = replace(problem, kappa=math.inf, n_iter=steps, resolution=resolution)
        weights, _ = silent.vertices("vertices", Steps(rows, exact), steps).weights()
        return int(np.count_nonzero(weights))

    return top_k(coef, releases.count("number of weights", rule, count_without_noise, coef.size))
