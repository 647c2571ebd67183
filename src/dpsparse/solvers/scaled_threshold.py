"""Hard thresholding that asks for no scale: rows as in gradient.py, released curvature, released step length.

    rows    z_i of length at most one, as in gradient.py (released masses or none, released length)
    h_j     L max(sum_i z_ij^2 + noise, twice the noise, an even share of the rows)      L: curvature of the loss
    T times g = sum_i z_i r_i + noise of sd s;  move each weight by -g_j/h_j
            u' = the k largest, by |u_j| sqrt h_j;   v = u' - u
            q = L (sum_i (z_i.v)^2 + noise), one number, because v is released
            u <- the k largest of u + rate v,   rate = (-g.v - e)/q in [0, 1]
            e = s^2 min(1 + log(d/k), 2) sum_j 1/h_j over the k: about what noise adds to -g.v

Half of the steps keep three times as many weights on seven tenths of the budget; what they drop is gone, rows get new
lengths, and the other half keeps k. A diagonal step of full length diverges where columns are alike (all entries
positive); the step length along v is that of a Newton step on a line. Where noise drowns the rows e is the
larger part, nothing moves, and the model is the mean or the class prior.

| symbol | variable | meaning |
|---|---|---|
| k | n_nonzero | weights kept, all classes together |
| T | n_iter | steps: a privacy parameter |
| h | curvature | noisy second derivative of the loss in one weight |

A step costs two passes over the non-zeros of kept features. Proof: docs/proofs/noisy_gradient.md.
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse.losses import get_loss, is_of_numbers
from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.moments import squares
from dpsparse.solvers.gradient import Recipe, RegressionRun, Run
from dpsparse.solvers.solution import Solution
from dpsparse.solvers.table_regression import converged

ROUNDS = (0.7, 0.3)  # shares of the steps that look for features, and of those that fit them
MORE = 3  # times as many weights as wanted while features are looked for
EXACT_ITER = 30  # steps of a round without noise: chosen on training rows of text, which more of them fit too closely


def solve(rows: Rows, public: Recipe, releases: Releases) -> Solution:
    """Weights (K, d) on the original features and offsets (K,)."""
    if releases.exact("gradients"):
        # Steps are for noise; without it the same model is found directly, where the table is narrow.
        assert isinstance(public.n_nonzero, int)
        found = converged(rows, public.loss, public.target_bound, public.n_nonzero, releases)
        if found is not None:
            return found
    kind = NumbersRun if is_of_numbers(public.loss) else ThresholdRun
    return kind(rows, public, releases).solve()


class ThresholdRun(Run):
    """One fit; `Run` releases prior, masses, length and offset, and calls what is defined here."""

    def __init__(self, rows: Rows, public: Recipe, releases: Releases) -> None:
        super().__init__(rows, public, releases)
        assert isinstance(public.n_nonzero, int)
        self.keep = MORE * public.n_nonzero
        self.smoothness = get_loss(public.loss).smoothness

    @property
    def rounds(self) -> tuple[float, ...]:
        return ROUNDS

    @property
    def steps_a_round(self) -> int:
        steps = max(1, (self.public.n_iter or EXACT_ITER) // len(ROUNDS))
        return max(steps, EXACT_ITER) if math.isinf(self.budget) else steps

    def descend(self, share: float, *, soften: bool) -> float:
        """Steps of one round; keeps `self.keep` weights."""
        n_iter = self.steps_a_round
        if self.units.width == 0:  # nothing stood out of the noise
            return 0.0
        self.n_iter += n_iter
        curvature = self.release_curvature()
        for _ in range(n_iter):
            self.step(curvature, share / n_iter)
        return 0.0

    def release_curvature(self) -> np.ndarray:
        """h, one number for every kept feature and one for the constant, (width + 1, 1)."""
        query, part = squares(self.units), 1.0 / len(ROUNDS)
        width = self.units.width
        noise = self.releases.scale("curvature", query, part)
        even = self.n / max(width, 1) * (0.5 if is_of_numbers(self.public.loss) else 1.0)
        found = np.maximum(self.releases.gaussian("curvature", query, part), max(2.0 * noise, even))
        return self.smoothness * np.append(found, self.n / (width + 1.0))[:, None]

    def step(self, curvature: np.ndarray, share: float) -> None:
        """One noisy gradient, the k largest of what it proposes, and as far towards them as is worth it."""
        query = self.gradient()
        noise = self.releases.scale("gradients", query, share)
        gradient = self.releases.gaussian("gradients", query, share)
        if self.constant == 0.0:
            gradient[-1] = 0.0
        here = np.vstack([self.weights, self.constant_weight])
        there = here - gradient / curvature
        root = np.sqrt(curvature[:-1])
        there[:-1] = top_k(there[:-1] * root, self.keep) / root
        towards = there - here
        length = float(np.square(towards).sum())
        if length == 0.0:
            return
        query = self.units.along(towards)
        part = 1.0 / (len(ROUNDS) * self.steps_a_round)
        doubt = self.releases.scale("line", query, part)
        along = float(self.releases.gaussian("line", query, part)[0]) + doubt
        bend = max(
            self.smoothness * along * length, 0.5 * float(np.sum(curvature * np.square(towards)))
        )
        kept = there != 0.0
        chosen = min(1.0 + math.log(max(kept.size / max(self.keep, 1), 1.0)), 2.0)
        drowned = noise**2 * chosen * float(np.sum(kept / curvature))
        rate = min(max((-float(np.sum(gradient * towards)) - drowned) / bend, 0.0), 1.0)
        moved = here + rate * towards
        self.weights = top_k(moved[:-1] * root, self.keep) / root
        self.constant_weight = moved[-1]

    def prune(self, noise: float, share: float, *, by_noise: bool) -> None:
        """Features without a weight are gone, and fewer weights are kept from here on."""
        stays = self.keep_features(np.asarray(self.weights.any(axis=1)))
        self.weights = self.weights[stays]
        assert isinstance(self.public.n_nonzero, int)
        self.keep = self.public.n_nonzero

    def publish(self, weights: np.ndarray, noise: float) -> Solution:
        return super().publish(weights, noise)._replace(coef_noise=None)


class NumbersRun(ThresholdRun, RegressionRun):
    """The same with clipped residuals."""
