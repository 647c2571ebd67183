"""Private ADMM for sparse logistic regression (Wang & Zhang 2020), penalties L1 and L_{1/2}.

    x = argmin sum_i a_i l(f_i.x, y_i) + coupling/2 |x - z + u|^2;   x += N(0, scale^2 I)   released
    z = prox(x + u):  soft threshold (L1) or half threshold (L_{1/2}) at `threshold`
    u = u + x - z                                                       K rounds; output z

| symbol | variable | meaning |
|---|---|---|
| n0 c | coupling | augmented-Lagrangian weight in sum form: the modulus of strong convexity |
| K | n_iter | rounds, each pays for one Gaussian release |
| lambda/c | threshold | of the proximal step; public |

Cost per round: a few Newton steps, each some passes over the non-zeros (conjugate gradients).
Deviation: the paper tilts every x-update by one reused vector and pays for one use of it; here each
x gets fresh Gaussian noise for its sensitivity, and z and u are post-processing of released x.
`published/wang_zhang_2020_admm.py` keeps the paper's noise for reproduction.
Proof: docs/proofs/admm.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsparse.losses import Loss
from dpsparse.random import gaussian
from dpsparse.solvers.objective import minimise, require_scalar_slope


def private_admm(
    rows: Any,
    y: np.ndarray,
    weights: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    penalty: str,
    n_iter: int,
    coupling: float,
    threshold: float,
    scale: float,
    tol: float,
    free: int,
) -> np.ndarray:
    """The sparse z after `n_iter` rounds; the last `free` coordinates (intercept) are not shrunk."""
    require_scalar_slope(loss)
    width = rows.shape[1]
    z, u = np.zeros(width), np.zeros(width)
    for _ in range(n_iter):
        x = minimise(rows, y, weights, loss, ridge=coupling, centre=z - u, tol=tol)
        x = x + gaussian(rng, scale, width)  # the only release
        z = shrink(x + u, threshold, penalty)
        if free:
            z[-free:] = (x + u)[-free:]
        u = u + x - z
    return z


def shrink(v: np.ndarray, threshold: float, penalty: str) -> np.ndarray:
    """argmin_z (z - v)^2/2 + t |z| (L1) or + t |z|^(1/2) (L_{1/2}), coordinate by coordinate."""
    if penalty == "l1":
        return np.asarray(np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0))
    # Xu et al. (2012): zero up to 1.5 t^(2/3), above it the largest root of z - v + t/(2 sqrt z) = 0
    cut = 1.5 * threshold ** (2.0 / 3.0)
    size = np.maximum(np.abs(v), cut)
    angle = np.arccos(threshold / 4.0 * (size / 3.0) ** -1.5)
    root = 2.0 / 3.0 * size * (1.0 + np.cos(2.0 / 3.0 * (np.pi - angle)))
    return np.asarray(np.where(np.abs(v) > cut, np.sign(v) * root, 0.0))
