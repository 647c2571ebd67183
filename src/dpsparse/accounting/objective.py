"""What objective perturbation costs: its (epsilon, delta) profile.

The mechanism releases argmin J, J(theta) = sum_i l_i(x_i.theta) + ridge/2 |theta|^2 + b.theta with
b ~ N(0, scale^2 I); every row has |grad l_i| <= L and l_i'' |x_i|^2 <= curvature. One more row
changes the density of the output at theta by the factor

    (1 + l''|x|^2 / ridge at most)  *  exp((2 b.g + |g|^2) / (2 scale^2)),   g = l'(x.theta) x.

With mu = L/scale, Z standard normal and r = |g|/L in [0, 1], the privacy loss is at most

    glm        c + mu |Z| + mu^2/2,                           c = log(1 + curvature/ridge)
    one-sided  c + max(0, mu Z + mu^2/2)                      slope never changes sign

Proofs (replace-one too): docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

import math

from scipy.special import log_ndtr, ndtr


def delta_profile(
    mu: float, flatness: float, loss: str, replace_one: bool, epsilon: float
) -> float:
    """Smallest delta proven for `epsilon` >= 0."""
    return min(1.0, max(0.0, _closed_delta(mu, flatness, loss, replace_one, epsilon)))


def _closed_delta(
    mu: float, flatness: float, loss: str, replace_one: bool, epsilon: float
) -> float:
    e = epsilon - math.log1p(flatness)
    if loss == "glm" and not replace_one:
        # E (1 - exp(e - mu|Z| - mu^2/2))_+, in closed form on both sides of e = mu^2/2.
        if e >= mu**2 / 2:
            return 2.0 * _gaussian_delta(e, mu)
        return 1.0 - 2.0 * math.exp(e) * float(ndtr(-mu))
    if loss == "glm":
        return 4.0 * _gaussian_delta(e, 2.0 * mu)
    if replace_one:
        moving = _gaussian_delta(e, 2.0 * mu) + 2.0 * _gaussian_delta(e, mu)
        return moving + max(0.0, -math.expm1(e))
    return _gaussian_delta(e, mu) if e >= 0 else 1.0 - 2.0 * math.exp(e) * float(ndtr(-mu / 2))


def _gaussian_delta(e: float, mu: float) -> float:
    """Exact profile of the Gaussian mechanism with sensitivity/scale = mu."""
    upper = log_ndtr(mu / 2 - e / mu)
    lower = e + log_ndtr(-mu / 2 - e / mu)
    return float(math.exp(upper) * -math.expm1(min(0.0, lower - upper)))
