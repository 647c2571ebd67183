"""Where Frank-Wolfe ends if nothing adds noise: the minimiser over the L1 ball, by spectral projected gradients.

    direction   P(w - a g) - w           P: projection to the ball;  a = |s|^2/(s.dg), s and dg of the step before
    step        w += rate direction,     rate = min(1, -g.direction/(L |Z direction|^2))       L: curvature of the loss

Frank-Wolfe itself needs O(1/gap) steps; these need some hundred (Barzilai and Borwein; Birgin, Martinez, Raydan
2000). The step is exact for the squared loss and a safe one for the others. Z is made of rows (x, c)/c, c the declared
bound of an entry and the constant inside the ball, as in the private run. Where scales would be released, radius and
middle come from them, but entries stay as they are. For plans without noise only; a step is two passes over the
non-zeros.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dpsparse.clipping import HUGE, TINY
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.solvers.frank_wolfe.scales import Scales
from dpsparse.solvers.look import Look
from dpsparse.solvers.solution import Solution
from dpsparse.solvers.table_regression import converged

if TYPE_CHECKING:
    from dpsparse.solvers.frank_wolfe.solve import Ball

STEPS = 500
GAP = 1e-6  # relative Frank-Wolfe gap at which a run ends
KNOWN = {"squared": "huber", "huber": "huber", "logistic": "logistic", "softmax": "softmax"}


def limit(rows: Rows, ball: Ball, releases: Releases) -> Solution:
    """Weights (K, d) and intercepts (K,) of the minimiser."""
    if ball.scales is not None:
        found = converged(
            rows, KNOWN[ball.loss.name], rows.domain.target_bound or 1.0, None, releases
        )
        return found or scaled_limit(rows, ball, ball.scales, releases)
    K, d = ball.n_outputs, rows.n_features
    numbers = ball.loss.labels == "numbers"
    target = (rows.domain.target_bound or 1.0) if numbers else 1.0
    bound = ball.feature_bound
    radius = ball.radius * bound / target
    cutoff = getattr(ball.loss, "cutoff", math.inf) / target if numbers else 1.0
    clip = min(cutoff, radius + 2.0) if numbers else math.sqrt(2.0)
    longest = math.sqrt(d + 1.0)
    units = rows.entries(bound, longest, bound if ball.fit_intercept else 0.0)
    offset = np.asarray(ball.offset or np.zeros(K), np.float64)
    smoothness = ball.loss.smoothness
    weights = np.zeros((d + 1, K))
    before: tuple[np.ndarray, np.ndarray] | None = None
    step, taken = 0.0, 0
    for _ in range(STEPS):
        query = units.gradient(
            KNOWN[ball.loss.name], weights[:-1], offset, clip=clip, cutoff=min(cutoff, clip),
            constant_weight=weights[-1],
        )  # fmt: skip
        gradient = releases.gaussian("vertices", query, 0.0)
        if not ball.fit_intercept:
            gradient[-1] = 0.0
        steepest = radius * float(np.abs(gradient).max(initial=0.0))
        gap = float(np.sum(gradient * weights)) + steepest
        if gap <= GAP * max(steepest, 1e-300) or steepest == 0.0:
            break
        if before is not None:
            moved, turned = weights - before[0], gradient - before[1]
            bent = float(np.sum(moved * turned))
            step = float(np.sum(moved * moved)) / bent if bent > 0.0 else 2.0 * step
        else:
            step = radius / float(np.abs(gradient).max())
        before = weights.copy(), gradient
        towards = onto_ball(weights - step * gradient, radius) - weights
        length = float(np.square(towards).sum())
        if length == 0.0:
            break
        along = float(releases.gaussian("vertices", units.along(towards), 0.0)[0])
        bend = smoothness * along * longest**2 * length
        rate = -float(np.sum(gradient * towards)) / bend if bend > 0.0 else 1.0
        weights = weights + min(max(rate, 0.0), 1.0) * towards
        taken += 1
    coef = weights[:-1].T * (target / bound)
    return Solution(np.ascontiguousarray(coef), weights[-1] * target + offset, max(taken, 1))


def scaled_limit(rows: Rows, ball: Ball, scales: Scales, releases: Releases) -> Solution:
    """The same on a ball whose size is measured: there is no noise, so it may be looked at."""
    look = Look(
        rows, releases, n_samples=scales.n_samples, longest=scales.longest, scale_columns=False
    )
    target, middle, unit = 1.0, 0.0, 1.0
    if scales.numbers:
        look.release_mean()
        look.release_spread()
        target = rows.domain.target_bound or 1.0
        middle, unit = look.mean, look.cutoff
    size = look.quantile("entry", rows.count_small, 0.5, TINY, HUGE)
    radius = scales.reach * unit * target / size
    moved = rows.standardised_targets(middle, 1.0) if scales.numbers else rows
    found = limit(moved, replace(ball, scales=None, radius=radius), releases)
    return found._replace(intercept=found.intercept + middle * target)


def onto_ball(weights: np.ndarray, radius: float) -> np.ndarray:
    """The nearest point of the L1 ball: all sizes fall by one cut, found among fewer and fewer of them
    (Michelot 1986)."""
    size = np.abs(weights)
    if float(size.sum()) <= radius:
        return weights
    above = size.ravel()
    while True:
        cut = (float(above.sum()) - radius) / above.size
        larger = above[above > cut]
        if larger.size in (0, above.size):
            return np.asarray(np.sign(weights) * np.maximum(size - cut, 0.0))
        above = larger
