"""Two-Stage as later papers implement it (Kifer, Smith and Thakurta, COLT 2012).

    S     = the s largest of votes_j/k + Lap(2 s/(k epsilon/2))          k = sqrt(n) blocks, s votes each
    theta = argmin of sum_i l(x_S.theta, y_i) + ridge/2 |theta|^2 + b.theta
            b ~ N(0, xi^2 (8 log(2/delta) + 4 epsilon)/epsilon^2 I)     Algorithm 1, objective perturbation

xi = sqrt(s) (logistic) or 2 s^(3/2) (squared), ridge = 2 (s/4 or s)/epsilon. The paper itself is not
among ours; later papers give stage one epsilon/2 and stage two epsilon, so 1.5 epsilon is spent. No guarantee
is stated here.
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse.losses import Logistic
from dpsparse.published._minimum import tilted_minimum


def voted_support(
    votes: np.ndarray, n_blocks: int, n_nonzero: int, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """Stage one: the features with the largest noisy share of blocks."""
    noise = rng.laplace(scale=2.0 * n_nonzero / (n_blocks * epsilon), size=len(votes))
    return np.sort(np.argsort(-(votes / n_blocks + noise))[:n_nonzero])


def tilt_scale(n_nonzero: int, epsilon: float, delta: float, *, logistic: bool) -> float:
    """Standard deviation of every entry of b."""
    bound = math.sqrt(n_nonzero) if logistic else 2.0 * n_nonzero**1.5
    return bound * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon


def default_ridge(n_nonzero: int, epsilon: float, *, logistic: bool) -> float:
    return 2.0 * (0.25 if logistic else 1.0) * n_nonzero / epsilon


def tilted_fit(
    rows: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    ridge: float,
    scale: float,
    logistic: bool,
) -> np.ndarray:
    """Stage two on the columns of the support (and the constant, if there is one)."""
    tilt = scale * rng.standard_normal(rows.shape[1])
    if logistic:
        return tilted_minimum(rows, y, Logistic(), ridge=ridge, tilt=tilt)
    hessian = rows.T @ rows + ridge * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(hessian, rows.T @ y - tilt))
