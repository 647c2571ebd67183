"""Algorithms 1 and 3 of Sparse Private LASSO Logistic Regression as printed (Khanna, Lu and Raff 2023).

    Alg. 1   the vertex of largest score + Lap(1/kappa) among the 2p signed ones                        p weights
    Alg. 3   for every feature a noisy vertex of its K weights at every step:

    alpha_v = <v, mean gradient> + Lap(K radius L sqrt(8 T log(K/delta)) / (n epsilon))     for every column of W
    W      <- (1 - mu) W + mu argmin_v alpha_v,   mu = 2/(t+2)                              K x p weights

Alg. 1 costs twice what the paper counts for a step under add-remove, and is proven at an epsilon computed anew
(docs/proofs/frank_wolfe.md). Alg. 3 makes p selections a step and pays for K: no guarantee. Alg. 2 is in
experiments/_sparsifier.py.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from dpsparse.solvers.frank_wolfe.steps import Steps


class NoisyMaxSteps(Steps):
    """Steps of Algorithm 1: report-noisy-max with Laplace noise of scale 1/kappa on exact scores."""

    kind: ClassVar[str] = "noisy max"
    fused = False

    def pick(self, scores: np.ndarray, rng: np.random.Generator) -> int:
        return int(np.argmax(self.problem.unit_kappa * scores + rng.laplace(size=scores.size)))


def multinomial_lasso(
    X: Any,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    n_classes: int,
    radius: float,
    n_iter: int,
    kappa: float,
) -> np.ndarray:
    """Algorithm 3: (p, K) weights; at every step a noisy vertex for each feature's K weights.

    `kappa` is the inverse of the printed noise scale, times radius/n. Its p selections a step are
    accounted as K, and W leaves the ball: no guarantee.
    """
    columns, width, K = sp.csc_array(X), X.shape[1], n_classes
    W = np.zeros((width, K))
    for t in range(1, n_iter + 1):
        slopes = softmax(X @ W, axis=1)
        slopes[np.arange(len(y)), y] -= 1.0
        keys = kappa * (columns.T @ slopes)
        noisy = np.concatenate([keys, -keys], axis=1) + rng.laplace(size=(width, 2 * K))
        best = noisy.argmax(axis=1)
        step = 2.0 / (t + 2.0)
        W *= 1.0 - step
        W[np.arange(width), best % K] -= step * radius * np.where(best < K, 1, -1)
    return W
