"""Full-batch DP gradient descent and DP-SGD (Song et al. 2013, Abadi et al. 2016).

    w <- w - step/n * (sum_i clip(grad_i(w), C) + N(0, sigma^2 I))

Proof (full batch). A row changes the sum by at most C in L2, whatever w is. T answers with sigma = C sqrt(T)/mu are
together mu-Gaussian-DP (adaptive composition of Gaussian DP), and mu is the one whose curve passes through (epsilon,
delta). Steps, momentum and the mean of the last iterates are post-processing. n is public.

Proof (Poisson). Every row is in a batch with probability q, independently. The noise multiplier is the smallest for
which the privacy loss distribution of T compositions of the Poisson-sampled Gaussian (dp-accounting, add or remove
one row) spends (epsilon, delta). The step divides by the public q n.

Settings were chosen on training rows of the tables: one constant each for all tasks.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from lab.rivals.base import (
    Array,
    Entry,
    Noise,
    Public,
    Weights,
    bounded_rows,
    clipped_gradient,
    gaussian_mu,
)

SHARE = 0.5  # of the public length of a row, to which rows are shortened,
SHARE_FOR_NUMBERS = 1.0  # where shortening them would bend the model
CLIP = 0.5  # of a gradient
STEPS = 60
STEP_SIZE = 64.0
STEP_SIZE_FOR_NUMBERS = 16.0
MOMENTUM = 0.8
RATE = 0.05  # of Poisson sampling
SAMPLED_STEPS = 400
# (epsilon, delta, rate, steps) -> noise multiplier, rounded up: a search takes a minute, and the ticket prices it anew.
CALIBRATED = {
    (0.3, 1e-6, 0.05, 400): 13.11,
    (1.0, 1e-6, 0.05, 400): 4.376,
    (3.0, 1e-6, 0.05, 400): 1.776,
}
SAMPLED_STEP_SIZE = 16.0
SAMPLED_STEP_SIZE_FOR_NUMBERS = 4.0


def fit(X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise) -> Weights:
    rows = bounded_rows(X, y, public, SHARE, SHARE_FOR_NUMBERS)
    sigma = CLIP * math.sqrt(STEPS) / gaussian_mu(epsilon, delta)

    def gradient(W: Array) -> Array:
        return noise.gaussian("gradient", clipped_gradient(rows, W, CLIP), CLIP, sigma)

    step = STEP_SIZE if public.target_range is None else STEP_SIZE_FOR_NUMBERS
    W = _descend(gradient, public, STEPS, step / public.n_rows)
    return rows.weights(W)


def fit_sampled(
    X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise
) -> Weights:
    rows = bounded_rows(X, y, public, SHARE, SHARE_FOR_NUMBERS)
    sigma = CLIP * noise_multiplier(epsilon, delta, RATE, SAMPLED_STEPS)

    def gradient(W: Array) -> Array:
        chosen = noise.poisson(len(rows.t), RATE)
        total = clipped_gradient(rows, W, CLIP, chosen)
        return noise.sampled_gaussian("batch", total, CLIP, sigma, RATE)

    step = SAMPLED_STEP_SIZE if public.target_range is None else SAMPLED_STEP_SIZE_FOR_NUMBERS
    W = _descend(gradient, public, SAMPLED_STEPS, step / (RATE * public.n_rows))
    return rows.weights(W)


def _descend(gradient: Any, public: Public, steps: int, step: float) -> Array:
    """Heavy-ball steps from zero; the mean of the last half."""
    W = np.zeros((public.n_outputs, public.n_features + 1))
    speed, mean = np.zeros_like(W), np.zeros_like(W)
    for t in range(steps):
        speed = MOMENTUM * speed - (1.0 - MOMENTUM) * step * gradient(W)
        W = W + speed
        if t >= steps // 2:
            mean += W / (steps - steps // 2)
    return mean


@lru_cache(maxsize=64)
def noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The smallest noise multiplier of Poisson-sampled Gaussian sums that spends (epsilon, delta)."""
    if math.isinf(epsilon):
        return 0.0
    if (epsilon, delta, rate, steps) in CALIBRATED:
        return CALIBRATED[epsilon, delta, rate, steps]
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    def event(sigma: float) -> Any:
        return dp.SelfComposedDpEvent(
            dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), steps
        )

    found = dp.calibrate_dp_mechanism(
        lambda: PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE),
        event,
        epsilon,
        delta,
        dp.LowerEndpointAndGuess(0.3, 2.0),
        tol=1e-3,
    )
    return float(found)


HANDLES = ("binary", "classes", "numbers")
GRADIENT_DESCENT = Entry("GradientDescent", fit, __doc__ or "", HANDLES)
STOCHASTIC_GRADIENT = Entry("DPSGD", fit_sampled, __doc__ or "", HANDLES)
