"""Iterative gradient hard thresholding: IGHT, DP-IGHT and peeling.

Jain, Tewari, Kar 2014 (IGHT); Wang, Gu 2019 (DP-IGHT); Cai, Wang, Zhang 2021 (peeling).

    IGHT      theta <- H_s((1 - step ridge) theta - step/n sum_i g_i)     H_s keeps the s largest
    gaussian  g_i clipped to ||g_i||_2 <= C, noise of sd `scale` on every entry of the sum
    peeling   S = private top-s of |theta_j - step/n sum_i g_ij|, Gaussian noise on the values of S

| symbol | variable | meaning |
|---|---|---|
| s | n_nonzero | weights kept, all classes together |
| T | n_iter | steps: a privacy parameter |
| C | row_clip | L2 bound on the gradient of a row, for slopes of at most one |

A step costs one pass over the non-zeros and one noise value a feature. Deviations: n is declared or
released, never read; the offset is a released class prior (or mean) and not a column; rows are clipped
where the papers assume a bound. Proofs: docs/proofs/noisy_gradient.md (gaussian), peeling.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse import arithmetic
from dpsparse.losses import get_loss, is_of_numbers
from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.solvers.gradient import Recipe, RegressionRun, Run
from dpsparse.solvers.peeling import peel
from dpsparse.solvers.solution import Solution
from dpsparse.solvers.table_regression import converged


@dataclass(frozen=True)
class Threshold:
    """The public side of a run."""

    prior: Recipe  # how number of rows, offset and (regression) cutoff are released
    method: str  # "gaussian" or "peeling"
    n_nonzero: int
    n_iter: int
    step: float | None
    ridge: float
    row_clip: float
    feature_bound: float | None = None  # peeling: bound on an entry


def solve(rows: Rows, public: Threshold, releases: Releases) -> Solution:
    """Weights (K, d) and offsets (K,)."""
    recipe = public.prior
    if public.step is None and public.ridge == 0.0 and releases.exact("prior"):
        # Steps of a fixed length are for noise; without it the same model is found directly.
        found = converged(rows, recipe.loss, recipe.target_bound, public.n_nonzero, releases)
        if found is not None:
            return found
    regression = is_of_numbers(recipe.loss)
    run = (RegressionRun if regression else Run)(rows, recipe, releases)
    run.release_prior()
    offset = run.offset
    if not regression:
        logs = arithmetic.log(run.counts)
        offset = logs[1:] - logs[:1] if recipe.n_outputs == 1 else logs - logs.mean()
    slope = run.clip if regression else 1.0  # the largest entry of a slope vector
    peeling = public.method == "peeling"
    step = public.step or default_step(
        public, run.n, releases.budget("values" if peeling else "gradients")
    )
    decay = 1.0 - step * public.ridge
    theta = np.zeros((rows.n_features, recipe.n_outputs))
    if peeling:
        assert public.feature_bound is not None
        unit = public.feature_bound
        units = rows.entries(unit, public.row_clip / unit)
        clip, stretch = slope * (math.sqrt(2.0) if recipe.n_outputs > 1 else 1.0), 0.0
    else:
        unit = public.row_clip
        units = rows.unit(np.ones(rows.n_features, np.float32))
        clip, stretch = slope, 1.0 / unit
    share, gain = 1.0 / public.n_iter, step * unit / run.n
    for _ in range(public.n_iter):
        sums = units.gradient(
            recipe.loss, theta, offset, clip=clip, cutoff=slope, original=True, stretch=stretch
        )
        if peeling:
            chosen, values = peel(
                releases, sums, decay / gain * theta, public.n_nonzero,
                norm_bound=clip * public.row_clip / unit, share=share,
            )  # fmt: skip
            theta = np.zeros_like(theta)
            theta.reshape(-1)[chosen] = gain * values
        else:
            gradient = releases.gaussian("gradients", sums, share)[:-1]
            theta = top_k(decay * theta - gain * gradient, public.n_nonzero)
    bound = recipe.target_bound
    return Solution(np.ascontiguousarray(theta.T) * bound, offset * bound, public.n_iter)


def default_step(public: Threshold, n: float, budget: float) -> float:
    """1/curvature for rows of the declared norm, shorter where noise would drown the rows."""
    longest = 1.0 / (get_loss(public.prior.loss).smoothness * public.row_clip**2)
    return longest * min(1.0, n * budget / public.n_iter / 10.0)
