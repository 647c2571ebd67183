"""Noisy full-gradient descent on a generalised linear model, in L2 geometry.

    m_i = x_i.w + b                        margins of all rows
    r_i = slope(m_i, y_i)                  |r_i| <= slope bound of the loss
    g   = sum_i r_i (x_i, 1) + N(0, scale^2 I)      the only access to the data
    u   = momentum u + g / n0;  (w, b) -= step u    n0 public: 1/n with a private n leaks

| symbol | variable | meaning |
|---|---|---|
| s | scale | standard deviation of the noise, from the plan |
| T | n_iter | number of noisy gradients: a privacy parameter |
| n0 | n_samples | public number of rows |

One step costs two passes over the non-zeros and one Gaussian vector.
"""

from __future__ import annotations

import numpy as np

from dpsparse.domain import BoundedData
from dpsparse.losses import Loss
from dpsparse.random import gaussian


def noisy_gradient_descent(
    data: BoundedData,
    loss: Loss,
    rng: np.random.Generator,
    *,
    n_outputs: int,
    n_iter: int,
    step: float,
    scale: float,
    momentum: float,
    n_samples: int,
    fit_intercept: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n_outputs, d) and intercepts (n_outputs,) after `n_iter` noisy steps from zero."""
    X, y = data.X, data.y
    width = X.shape[1] + fit_intercept
    weights = np.zeros((n_outputs, width))
    velocity = np.zeros_like(weights)
    columns = X.T.tocsr()
    for _ in range(n_iter):
        margins = X @ weights[:, : X.shape[1]].T
        if fit_intercept:
            margins = margins + weights[:, -1]
        slopes = loss.slope(margins if n_outputs > 1 else margins[:, 0], y).reshape(-1, n_outputs)
        gradient = np.empty_like(weights)
        gradient[:, : X.shape[1]] = (columns @ slopes).T
        if fit_intercept:
            gradient[:, -1] = slopes.sum(axis=0)
        if scale > 0:
            gradient += gaussian(rng, scale, gradient.shape)
        velocity = momentum * velocity + gradient / n_samples
        weights -= step * velocity
    intercept = weights[:, -1].copy() if fit_intercept else np.zeros(n_outputs)
    return weights[:, : X.shape[1]], intercept
