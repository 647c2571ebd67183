"""AdaSSP (Wang 2018) and a corrected boosted form (Tang et al. 2023): noisy second moments, then least squares.

    A = Z'Z + N, b = Z't + N, w = (A + lambda I)^-1 b, lambda from a noisy smallest eigenvalue
    boosted: the residuals are clipped and regressed again, with A released once

Proof. |z| <= B. A row adds zz' to Z'Z: as a vector of diagonal entries and sqrt 2 times the entries above it has
length |z|^2 <= B^2, so noise of sd s on the diagonal and s/sqrt 2 above it is a Gaussian answer of sensitivity B^2.
The smallest eigenvalue moves by at most B^2 (Weyl). A row adds tz to Z't, |tz| <= B for |t| <= 1; clipped residuals
are bounded by 1 too. Shares f_1, f_2, ... of mu^2 (sum 1) give each answer mu sqrt f; together they are mu-Gaussian-
DP, and mu is the one whose curve passes through (epsilon, delta). Everything else is post-processing. Published code
of the boosted form takes mu itself for a noise multiplier; here every round is paid for.

Labels 0/1 are regressed as -1/1.
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
)

SHARE = 0.35  # of the public length of a row, to which rows are shortened,
SHARE_FOR_NUMBERS = 0.7  # where shortening them would bend the model
FAILURE = 0.05  # of the bound on the eigenvalues of the noise, as the paper has it
ROUNDS = 3
ROUND_STEP = 1.0
SECOND_MOMENTS_SHARE = 0.35  # of mu^2, boosted


def fit(X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise) -> Weights:
    rows, t = _rows_and_targets(X, y, public)
    mu = gaussian_mu(epsilon, delta) / math.sqrt(3.0)
    d, bound = rows.Z.shape[1], Rows.NORM
    A = _second_moments(rows, noise, mu)
    smallest = noise.gaussian("smallest eigenvalue", _eigenvalue(rows), bound**2, bound**2 / mu)
    b = noise.gaussian("first moments", np.asarray(rows.Z.T @ t), bound, bound / mu)
    return rows.weights(np.linalg.solve(A + _ridge(float(smallest[0]), d, mu) * np.eye(d), b))


def fit_boosted(
    X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise
) -> Weights:
    rows, t = _rows_and_targets(X, y, public)
    mu = gaussian_mu(epsilon, delta)
    mu_moments = mu * math.sqrt(SECOND_MOMENTS_SHARE)
    mu_round = mu * math.sqrt((1.0 - SECOND_MOMENTS_SHARE) / ROUNDS)
    d = rows.Z.shape[1]
    A = _second_moments(rows, noise, mu_moments)
    values, vectors = np.linalg.eigh(A)
    spread = Rows.NORM**2 * math.sqrt(d) / mu_moments if not math.isinf(mu) else 1e-6
    inverse = (vectors / (np.maximum(values, 0.0) + spread)) @ vectors.T
    w = np.zeros(d)
    for _ in range(ROUNDS):
        rest = np.clip(t - rows.Z @ w, -1.0, 1.0)
        b = noise.gaussian(
            "residuals", np.asarray(rows.Z.T @ rest), Rows.NORM, Rows.NORM / mu_round
        )
        w = w + ROUND_STEP * inverse @ b
    return rows.weights(w)


def _rows_and_targets(X: Any, y: Array, public: Public) -> tuple[Rows, Array]:
    rows = bounded_rows(X, y, public, SHARE, SHARE_FOR_NUMBERS)
    return rows, rows.t if public.target_range is not None else 2.0 * rows.t - 1.0


def _dense(product: Any) -> Array:
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def _second_moments(rows: Rows, noise: Noise, mu: float) -> Array:
    return noisy_matrix("second moments", _dense(rows.Z.T @ rows.Z), Rows.NORM**2, mu, noise)


def _eigenvalue(rows: Rows) -> Array:
    return np.linalg.eigvalsh(_dense(rows.Z.T @ rows.Z))[:1]


def _ridge(smallest: float, d: int, mu: float) -> float:
    """The paper's: as much as the noise of the second moments may need beyond the smallest eigenvalue."""
    if math.isinf(mu):
        return 1e-9
    sd = Rows.NORM**2 / mu
    sure = max(0.0, smallest - sd * math.sqrt(2.0 * math.log(2.0 / FAILURE)))
    return max(0.0, sd * math.sqrt(d * math.log(2.0 * d * d / FAILURE)) - sure)


ADASSP = Entry("AdaSSP", fit, __doc__ or "", most_columns=1500)
BOOSTED_ADASSP = Entry("BoostedAdaSSP", fit_boosted, __doc__ or "", most_columns=1500)
