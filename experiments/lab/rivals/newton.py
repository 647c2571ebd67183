"""Double-noise Newton steps (after Ganesh et al. 2023): noisy gradient, noisy curvature.

    w <- w - (H + N_H + ridge I)^-1 (g + N_g)

Proof. |z| <= sqrt 2 and the slope is at most 1 (numbers: clipped to 1), so a row moves g by at most sqrt 2. Its
curvature l'' zz' with l'' <= 1/4 (numbers 1) has Frobenius norm at most l'' |z|^2 <= 1/2 (numbers 2); as a vector of
diagonal entries and sqrt 2 times those above it has that length. Each of T steps asks both, with shares of mu^2 that
add up to 1; adaptive composition of Gaussian DP. The curvature of a square does not depend on w and is asked once.
Eigenvalues are floored and the step is solved afterwards: post-processing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab.rivals.base import (
    Array,
    Entry,
    Noise,
    Public,
    Rows,
    Weights,
    bounded_rows,
    gaussian_mu,
    noisy_matrix,
    slopes_of,
)

SHARE = 0.5  # of the public length of a row, to which rows are shortened,
SHARE_FOR_NUMBERS = 1.0  # where shortening them would bend the model
STEPS = 3
CURVATURE_SHARE = 0.3  # of mu^2
FLOOR = 1.0  # of eigenvalues, in standard deviations of the noise times sqrt d


def fit(X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise) -> Weights:
    rows = bounded_rows(X, y, public, SHARE, SHARE_FOR_NUMBERS)
    mu, numbers = gaussian_mu(epsilon, delta), public.target_range is not None
    bend = Rows.NORM**2 * (1.0 if numbers else 0.25)
    asked_once = 1 if numbers else STEPS
    mu_curvature = mu * math.sqrt(CURVATURE_SHARE / asked_once)
    mu_gradient = mu * math.sqrt((1.0 - CURVATURE_SHARE) / STEPS)
    w = np.zeros(public.n_features + 1)
    inverse = np.eye(len(w))
    for step in range(STEPS):
        slopes = slopes_of(rows, w[None])[:, 0]
        if step < asked_once:
            weights = (
                np.ones_like(slopes) if numbers else (slopes + rows.t) * (1.0 - slopes - rows.t)
            )
            inverse = _inverse(
                _curvature(rows, weights, noise, bend, mu_curvature), bend / mu_curvature
            )
        slopes = np.clip(slopes, -1.0, 1.0)
        gradient = noise.gaussian(
            "gradient", np.asarray(rows.Z.T @ slopes), Rows.NORM, Rows.NORM / mu_gradient
        )
        w = w - inverse @ gradient
    return rows.weights(w)


def _curvature(rows: Rows, weights: Array, noise: Noise, bound: float, mu: float) -> Array:
    if sp.issparse(rows.Z):
        H = (rows.Z.T @ (sp.diags_array(weights) @ rows.Z)).toarray()
    else:
        H = rows.Z.T @ (weights[:, None] * rows.Z)
    return noisy_matrix("curvature", H, bound, mu, noise)


def _inverse(H: Array, sd: float) -> Array:
    values, vectors = np.linalg.eigh(H)
    floor = max(FLOOR * sd * math.sqrt(len(H)), 1e-6)
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)


NEWTON = Entry("DoubleNoiseNewton", fit, __doc__ or "", most_columns=1500)
