"""DP-IGHT (Wang & Gu 2019) as a rival: noisy gradients of the summed loss, hard thresholding.

Proven: rows' gradients clipped in L2 to `clip`, Gaussian noise from the accountant (add/remove).
Published: noise N(0, T G^2/(n^2 rho) I) on the mean gradient, rho = eps + 2l - 2 sqrt(l(eps + l)) with
l = log(1/delta) and an assumed, not enforced, gradient bound G.
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse.privacy import Gaussian, Guarantee, NonPrivate, Phase, Plan, Repeated, calibrate
from dpsparse.random import gaussian, make_generator


def dp_ight(
    X, y, loss, *, n_nonzero, epsilon, delta, clip, step, n_iter, published, seed
) -> tuple[np.ndarray, Guarantee]:
    n, d = X.shape
    rng = make_generator(seed)
    if published:
        log = math.log(1.0 / delta)
        rho = epsilon + 2.0 * log - 2.0 * math.sqrt(log * (epsilon + log))
        scale = math.sqrt(n_iter / rho) * clip
        event = NonPrivate()
    else:
        scale = calibrate(lambda s: Repeated(Gaussian(s, clip), n_iter), epsilon, delta)
        event = Repeated(Gaussian(scale, clip), n_iter)
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    theta = np.zeros(d)
    for _ in range(n_iter):
        slopes = loss.slope(X @ theta, y)
        if not published:
            slopes = slopes * np.minimum(1.0, clip / np.maximum(np.abs(slopes) * norms, 1e-300))
        moved = theta - step / n * (X.T @ slopes + gaussian(rng, scale, d))
        theta = np.zeros(d)
        kept = np.argsort(-np.abs(moved))[:n_nonzero]
        theta[kept] = moved[kept]
    plan = Plan(
        method="DP-IGHT", phases=(Phase("gradients", event),), epsilon=float(epsilon), delta=delta,
        adjacency="add-remove", source="experiments/_ight.py", proven=not published,
        calibration="published" if published else "proven",
    )  # fmt: skip
    return theta, plan.guarantee
