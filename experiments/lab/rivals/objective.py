"""Objective perturbation (Chaudhuri et al. 2011, Kifer et al. 2012) with its exact price.

    theta = argmin sum_i loss(z_i theta, t_i) + ridge/2 |theta|^2 + b theta,  b ~ N(0, sigma^2 I)

Proof. docs/proofs/objective_perturbation.md: rows have |z| <= sqrt 2, so the logistic slope gives a gradient of at
most sqrt 2 and a curvature of at most 1/2; the Huber loss (cutoff 1/4) a gradient of at most sqrt 2/4 and a curvature
of at most 2. The minimiser is found to a gradient of at most tau; the objective is ridge-strongly convex, so the
point is within tau/ridge of the exact one, and Gaussian noise pays for a sensitivity of 2 tau/ridge with a thousandth
of mu^2. Both events are composed and sigma is calibrated so that they spend (epsilon, delta).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse.accounting import Gaussian, ObjectivePerturbation, Sequence, calibrate
from lab.rivals.base import Array, Entry, Noise, Public, Rows, Weights, bounded_rows, gaussian_mu

SHARE = 0.5  # of the public length of a row, to which rows are shortened,
SHARE_FOR_NUMBERS = 1.0  # where shortening them would bend the model
CUTOFF = 0.25  # of the Huber loss, in halves of the target's range
RIDGE = 4.0  # over min(epsilon, 4)
JITTER_SHARE = 1e-3  # of mu^2
TOLERANCE = 1e-4


def fit(X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise) -> Weights:
    rows = bounded_rows(X, y, public, SHARE, SHARE_FOR_NUMBERS)
    numbers = public.target_range is not None
    gradient_bound = Rows.NORM * (CUTOFF if numbers else 1.0)
    curvature = Rows.NORM**2 * (1.0 if numbers else 0.25)
    ridge = RIDGE / min(epsilon, 4.0)
    jitter = gaussian_mu(epsilon, delta) * math.sqrt(JITTER_SHARE)

    def event(scale: float) -> ObjectivePerturbation:
        kind = "glm" if numbers else "one-sided"
        return ObjectivePerturbation(scale, gradient_bound, curvature, ridge, kind)

    scale = calibrate(lambda s: Sequence((event(s), Gaussian(1.0 / jitter))), epsilon, delta)

    def objective(theta: Array) -> tuple[float, Array]:
        margins = np.asarray(rows.Z @ theta)
        if numbers:
            rest = margins - rows.t
            cut = np.clip(rest, -CUTOFF, CUTOFF)
            value, slopes = float(np.sum(cut * rest - cut**2 / 2.0)), cut
        else:
            signs = 2.0 * rows.t - 1.0
            value = float(np.sum(np.logaddexp(0.0, -signs * margins)))
            slopes = -signs / (1.0 + np.exp(np.clip(signs * margins, -500, 500)))
        return value + ridge / 2.0 * float(theta @ theta), rows.Z.T @ slopes + ridge * theta

    def second(theta: Array) -> Array:
        margins = np.asarray(rows.Z @ theta)
        if numbers:
            bend = (np.abs(margins - rows.t) <= CUTOFF).astype(float)
        else:
            chances = 1.0 / (1.0 + np.exp(-np.clip(margins, -500, 500)))
            bend = chances * (1.0 - chances)
        weighted = sp.diags_array(bend) @ sp.csr_array(rows.Z)
        return np.asarray(rows.Z.T @ weighted.toarray()) + ridge * np.eye(theta.size)

    start = np.zeros(public.n_features + 1)
    theta = noise.minimise("minimiser", objective, start, event(scale), TOLERANCE, second)
    reach = 2.0 * TOLERANCE / ridge
    return rows.weights(noise.gaussian("inexactness", theta, reach, reach / jitter))


OBJECTIVE = Entry("ObjectivePerturbation", fit, __doc__ or "")
