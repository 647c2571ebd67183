"""Sparse Private LASSO Logistic Regression as printed (Khanna, Lu and Raff 2023): Algorithms 1 and 2.

    alpha_v = <v, mean gradient> + Lap(radius L sqrt(8 T log(1/delta)) / (n epsilon))     2p vertices v
    w      <- (1 - mu) w + mu argmin_v alpha_v,   mu = 2/(t+2)                         Alg. 1
    c      <- clip(clip(count, a, b) + Geometric2, a, b),  a = sqrt(p), b = 2 sqrt(p)     Alg. 2

Algorithm 3 is reached by an estimator: src/dpsparse/published/khanna_lu_raff_2023_sparsifier.py.

`exact_sign=True` is what the same authors print for this step in Raff, Khanna and Lu (2023), Alg. 1, lines
8 and 10: the index is noisy (the gradient without the radius, the noise with it; printed is an arg min of
the magnitudes, meant an arg max), and the step goes against the exact sign. That is not private at any noise.

What is wrong as printed: a Laplace noisy max costs 2 epsilon' a step under add-remove and 4 under replace-one,
charged is 1 (the advanced composition around it is loose enough that the whole is fine at small epsilon under
add-remove: `KhannaLuRaffLasso*` states what it is worth); bounds sqrt(p) are not
whole, so that the supports of two noisy counts differ.
The listing of Appendix B differs from the algorithms: line 43 climbs, line 58 discards the noise of the
count. Table 1's 12.70 for splice says that what was run did not discard it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse.losses import Logistic, Loss


def laplace_scale(radius: float, n_iter: int, n: int, epsilon: float, delta: float) -> float:
    """Noise of Algorithm 1 with Lipschitz constant 1 (Corollary 1)."""
    return radius * math.sqrt(8.0 * n_iter * math.log(1.0 / delta)) / (n * epsilon)


def private_lasso(
    X: Any,
    y: np.ndarray,
    radius: float,
    n_iter: int,
    scale: float,
    rng: np.random.Generator | None,
    *,
    exact_sign: bool = False,
    loss: Loss | None = None,
) -> np.ndarray:
    """Algorithm 1: weights after `n_iter` steps; scale 0 is the non-private algorithm.

    Another `loss` than the logistic one is Talwar, Thakurta and Zhang (2015), from whom it comes.
    """
    dense = isinstance(X, np.ndarray)
    columns = X if dense else sp.csc_array(X)
    transposed, slope = columns.T, (loss or Logistic()).slope
    n, p = X.shape
    w, margins = np.zeros(p), np.zeros(n)
    for t in range(1, n_iter + 1):
        gradient = transposed @ slope(margins, y) / n
        if exact_sign and rng is not None:
            j = int(np.argmax(np.abs(gradient + rng.laplace(0.0, scale, p))))
            sign = -float(np.sign(gradient[j]))
        else:
            both = radius * np.concatenate([gradient, -gradient])
            if rng is not None and scale:
                both += rng.laplace(0.0, scale, 2 * p)
            k = int(np.argmin(both))
            j, sign = (k, 1.0) if k < p else (k - p, -1.0)
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[j] += step * sign * radius
        margins *= 1.0 - step  # margins = X w, kept up with one column a step
        if dense:
            margins += step * sign * radius * columns[:, j]
        else:
            at = slice(columns.indptr[j], columns.indptr[j + 1])
            margins[columns.indices[at]] += step * sign * radius * columns.data[at]
    return w


def noisy_count(count: int, p: int, epsilon: float, rng: np.random.Generator) -> int:
    """Lines 3 to 5 of Algorithm 2 with the paper's bounds sqrt(p) and 2 sqrt(p)."""
    low, high = math.sqrt(p), 2.0 * math.sqrt(p)
    c = min(max(float(count), low), high)
    success = 1.0 - math.exp(-epsilon / (high - low))
    c += int(rng.geometric(success)) - int(rng.geometric(success))
    return int(min(max(c, low), high))


def listed_count(count: int, low: int, high: int) -> int:
    """Line 58 of the listing in Appendix B: the exact count again, its noise discarded."""
    return min(max(int(count), low), high)


def keep_largest(w: np.ndarray, k: int) -> np.ndarray:
    kept = np.zeros_like(w)
    if k > 0:
        at = np.argpartition(np.abs(w), -k)[-k:]
        kept[at] = w[at]
    return kept
