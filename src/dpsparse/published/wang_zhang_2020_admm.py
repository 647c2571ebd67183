"""Private ADMM as later papers implement it (Wang and Zhang, Neurocomputing 2020), L1 and L_{1/2}.

    c  = (8 g + 2.8) / (4 (epsilon/K) n)                  g: a free parameter, K rounds
    b  = a vector of norm Gamma(p, 1/g) and uniform direction, drawn once
    w  <- argmin of mean loss + c/2 |w - z - v/c|^2 + c b.w
    z  <- threshold of w - v/c at strength/c (soft for L1, half for L_{1/2});   v <- v + c (z - w)

The paper itself is not among ours; this is its noise as later papers state it. One b is used for K releases
and its budget pays for one use of it, so no guarantee is stated. Khanna, Lu and Raff (2023) could
not reproduce its sparsity either and copied its curve.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsparse.losses import Loss
from dpsparse.published._minimum import tilted_minimum


def admm(
    rows: Any,
    y: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    penalty: str,
    n_iter: int,
    strength: float,
    gamma: float,
    step_epsilon: float,
    n_samples: int,
) -> np.ndarray:
    """The sparse z after `n_iter` rounds with one noise vector for all of them. Not private."""
    n, width = n_samples, rows.shape[1]
    c = (8.0 * gamma + 2.8) / (4.0 * step_epsilon * n)
    direction = rng.standard_normal(width)
    b = rng.gamma(width, 1.0 / gamma) * direction / np.linalg.norm(direction)
    z, v = np.zeros(width), np.zeros(width)
    for _ in range(n_iter):
        w = tilted_minimum(rows, y, loss, ridge=n * c, centre=z + v / c, tilt=n * c * b)
        z = threshold(w - v / c, strength / c, penalty)
        v = v + c * (z - w)
    return z


def threshold(v: np.ndarray, size: float, penalty: str) -> np.ndarray:
    """argmin_z (z - v)^2/2 + t |z| (L1) or + t |z|^(1/2) (L_{1/2}), coordinate by coordinate."""
    if penalty == "l1":
        return np.asarray(np.sign(v) * np.maximum(np.abs(v) - size, 0.0))
    # Xu et al. (2012): zero up to 1.5 t^(2/3), above it the largest root of z - v + t/(2 sqrt z) = 0
    cut = 1.5 * size ** (2.0 / 3.0)
    large = np.maximum(np.abs(v), cut)
    angle = np.arccos(size / 4.0 * (large / 3.0) ** -1.5)
    root = 2.0 / 3.0 * large * (1.0 + np.cos(2.0 / 3.0 * (np.pi - angle)))
    return np.asarray(np.where(np.abs(v) > cut, np.sign(v) * root, 0.0))
