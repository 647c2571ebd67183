"""Iterative gradient hard thresholding on rows of released scale, with a released length of every step.

Jain, Tewari, Kar 2014 (IGHT); Wang, Gu 2019 (DP-IGHT).

    rows    z_i of length at most one, as in solvers/gradient.py (released masses or none, released length)
    T times g = sum_i slope_i z_i + noise of sd s;   h = max(L n/d, 2 s)                    L: curvature of the loss
            u' = the k largest entries of u - g/h;   v = u' - u
            q = L (sum_i (z_i.v)^2 + noise), one number, because v is released
            u <- the k largest entries of u + rate v,   rate = (-g.v - e)/q in [0, 1]
            e = min(1 + log(d/k), 2) s^2 k/h: what noise adds to -g.v

The first half of the steps keeps three times as many weights on seven tenths of the budget. What it drops is gone, rows
get new lengths, and the other half keeps k. A step of full length diverges where columns are alike (all entries
positive), so its length is that of a Newton step on the line along v. Where noise drowns the rows e is the larger part,
nothing moves, and the model is the mean or the class prior.

| symbol | variable | meaning |
|---|---|---|
| k | n_nonzero | weights kept, all classes together |
| T | n_iter | steps: a privacy parameter |

A step costs two passes over the non-zeros of kept features. Without noise the steps are the same. Deviations from the
papers: n is declared or released, never read; rows are clipped to a released length where the papers assume a bound;
the offset is released. Proof: docs/proofs/noisy_gradient.md.
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse.losses import get_loss, is_of_numbers
from dpsparse.methods.hard_threshold.defaults import (
    CURVATURE_PER_NOISE,
    MAX_NOISE_GAIN,
    SEARCH_BUDGET_SHARE,
    SEARCH_WEIGHTS_FACTOR,
)
from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.solvers.gradient import Recipe, RegressionRun, Run
from dpsparse.solvers.solution import Solution


def solve(rows: Rows, settings: Recipe, releases: Releases) -> Solution:
    """Weights (K, d) on the original features and offsets (K,)."""
    kind = _ThresholdRegression if is_of_numbers(settings.loss) else _Threshold
    return kind(rows, settings, releases).solve()


class _Threshold(Run):
    """One fit; `Run` releases prior, masses, length and offset, and calls what is defined here."""

    def __init__(self, rows: Rows, public: Recipe, releases: Releases) -> None:
        super().__init__(rows, public, releases)
        assert isinstance(public.n_nonzero, int)
        assert public.n_iter is not None
        self.n_iter, self.n_nonzero = public.n_iter, public.n_nonzero
        self.keep, self.steps_left = SEARCH_WEIGHTS_FACTOR * public.n_nonzero, public.n_iter
        self.smoothness = get_loss(public.loss).smoothness

    @property
    def rounds(self) -> tuple[float, ...]:
        return SEARCH_BUDGET_SHARE, 1.0 - SEARCH_BUDGET_SHARE

    def descend(self, share: float, *, soften: bool) -> float:
        """Half of the steps; `self.keep` weights are left."""
        searching = self.keep > self.n_nonzero
        n_steps = math.ceil(self.n_iter / 2) if searching else self.steps_left
        self.steps_left -= n_steps
        if self.units.width > 0:  # no feature may have stood out of the noise
            for _ in range(n_steps):
                self.step(share / n_steps)
        return 0.0

    def step(self, share: float) -> None:
        """One noisy gradient, the k largest of what it proposes, and as far towards them as is worth it."""
        query = self.gradient()
        noise = self.releases.scale("gradients", query, share)
        gradient = self.releases.gaussian("gradients", query, share)
        if self.constant == 0.0:
            gradient[-1] = 0.0
        even = self.smoothness * self.n / (self.units.width + 1)
        curvature = max(even, CURVATURE_PER_NOISE * noise)
        here = np.vstack([self.weights, self.constant_weight])
        there = here - gradient / curvature
        there[:-1] = top_k(there[:-1], self.keep)
        towards = there - here
        length = float(np.square(towards).sum())
        if length == 0.0:
            return
        query = self.units.along(towards)
        part = 1.0 / self.n_iter
        doubt = self.releases.scale("line", query, part)
        along = float(self.releases.gaussian("line", query, part)[0]) + doubt
        bend = max(self.smoothness * along, 0.5 * curvature) * length
        gain = min(1.0 + math.log(there.size / np.count_nonzero(there)), MAX_NOISE_GAIN)
        pretended = gain * noise**2 * np.count_nonzero(there) / curvature
        rate = min(max((-float(np.sum(gradient * towards)) - pretended) / bend, 0.0), 1.0)
        moved = here + rate * towards
        self.weights = top_k(moved[:-1], self.keep)
        self.constant_weight = moved[-1]

    def prune(self, noise: float, share: float, *, by_noise: bool) -> None:
        """Features without a weight are gone, and fewer weights are kept from here on."""
        self.keep = self.n_nonzero
        weights = top_k(self.weights, self.keep) if self.steps_left == 0 else self.weights
        stays = self.keep_features(np.asarray(weights.any(axis=1)))
        self.weights = weights[stays]

    def publish(self, weights: np.ndarray, noise: float) -> Solution:
        return super().publish(weights, noise)._replace(coef_noise=None)


class _ThresholdRegression(_Threshold, RegressionRun):
    """The same with clipped residuals."""
