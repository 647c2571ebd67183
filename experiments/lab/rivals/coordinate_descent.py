"""DP greedy coordinate descent (Mangold et al. 2022): pick the steepest coordinate, move along it.

    j = pick by |g_j| (exponential mechanism);  w_j <- w_j - (g_j + noise) / (n curvature_j)

Proof. Entries are bounded by 1 and slopes by 1 (numbers: clipped), so a row moves every coordinate of the gradient by
at most 1, hence every score |g_j| by at most 1: a pick with weights exp(eta score/2) is an exponential mechanism of
range eta. The picked coordinate is one Gaussian answer of sensitivity 1. T picks and T answers, each pair with eta =
x and Gaussian parameter x, are composed by the library's accountant, and x is calibrated so that they spend (epsilon,
delta). Curvatures are the public bound 1/4 (numbers 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse.accounting import Exponential, Gaussian, Repeated, Sequence, calibrate
from lab.rivals.base import Array, Entry, Noise, Public, Rows, Weights, targets_of

STEPS = 50
STEP = 2.0  # over the public bound on the curvature: entries are smaller than their bounds


def fit(X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise) -> Weights:
    X = sp.csr_array(X)
    Z = sp.csr_array((np.clip(X.data, -1.0, 1.0), X.indices, X.indptr), X.shape)
    Z = sp.csr_array(sp.hstack([Z, np.ones((Z.shape[0], 1))], format="csr"))
    columns = Z.tocsc()
    numbers = public.target_range is not None
    t = targets_of(y, public)
    x = calibrate(
        lambda x: Repeated(Sequence((Exponential(x), Gaussian(1.0 / x))), STEPS), epsilon, delta
    )
    w, margins = np.zeros(Z.shape[1]), np.zeros(Z.shape[0])
    curvature = 1.0 if numbers else 0.25
    for _ in range(STEPS):
        slopes = (
            np.clip(margins - t, -1, 1)
            if numbers
            else 1 / (1 + np.exp(-np.clip(margins, -30, 30))) - t
        )
        gradient = np.asarray(columns.T @ slopes)
        j = noise.pick("coordinate", np.abs(gradient), 1.0, x)
        told = float(noise.gaussian("slope", gradient[j : j + 1], 1.0, 1.0 / x)[0])
        move = -STEP * told / (curvature * public.n_rows)
        w[j] += move
        margins += move * columns[:, [j]].toarray().ravel()
    return Rows(Z, t, 1.0, public).weights(w)


COORDINATE_DESCENT = Entry("GreedyCoordinate", fit, __doc__ or "")
