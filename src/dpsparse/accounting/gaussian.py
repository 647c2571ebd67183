"""The profile of N(mu, 1) against N(0, 1), with a bound on the rounding error.

    G_mu(e^y) = Phi(mu/2 - y/mu) - e^y Phi(-mu/2 - y/mu),    dG/dg = -Phi(-mu/2 - y/mu)

With x = y/mu - mu/2 and the Mills ratio m(x) = Phi(-x)/phi(x) this is phi(x) (m(x) - m(x + mu)): no
difference of tiny probabilities, so the far tail keeps its digits (Balle and Wang 2018 for the formula).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

Array = np.ndarray[Any, np.dtype[np.float64]]

# The root of a profile is approached from above to about this distance, in standard deviations of the loss.
_CLOSE = 1e-12

# Gauss-Legendre on [0, 1].
_NODES, _WEIGHTS = (v / 2.0 for v in np.polynomial.legendre.leggauss(8))
_NODES = _NODES + 0.5


def log_profile(mu: float, y: Array) -> tuple[Array, Array]:
    """log G_mu(e^y) for y >= 0 and mu > 0, and a bound on the error of that logarithm."""
    x = y / mu - mu / 2.0
    with np.errstate(all="ignore"):
        if mu < 0.5:  # m(x) - m(x+mu) would cancel: integrate -m'(z) = 1 - z m(z)
            z = x[..., None] + mu * _NODES
            gap = mu * np.sum((1.0 - z * _mills(z)) * _WEIGHTS, axis=-1)
        else:
            gap = _mills(x) - _mills(x + mu)
        value = -0.5 * x * x - 0.5 * math.log(2.0 * math.pi) + np.log(np.maximum(gap, 1e-300))
        error = 1e-15 * (4.0 + x * x)
        if np.any(x < -5.0):  # the profile is close to 1
            direct = ndtr(-x) - np.exp(y + log_ndtr(-x - mu))
            value = np.where(x < -5.0, np.log(direct), value)
            error = np.where(x < -5.0, 4e-16 / direct, error)
    return np.asarray(value), np.asarray(error)


def profile(mu: float, y: Array) -> Array:
    """An upper bound of G_mu(e^y) for any y, equal to it up to rounding."""
    if mu == 0.0:
        return np.maximum(0.0, -np.expm1(y))
    value, error = log_profile(mu, np.abs(y))
    above = np.exp(np.minimum(0.0, value + error))
    # Swapping the two laws: G(1/g) = 1 - 1/g + G(g)/g.
    below = -np.expm1(np.minimum(y, 0.0)) + np.exp(np.minimum(y, 0.0)) * above
    return np.asarray(np.where(y >= 0.0, above, below))


def _mills(z: Array) -> Array:
    """Phi(-z)/phi(z)."""
    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(z / math.sqrt(2.0)), dtype=np.float64)


def smallest_epsilon(log_delta: Callable[[float], float], mu: float, target: float) -> float:
    """The smallest epsilon >= 0 with log_delta(epsilon) <= target, from the safe side; infinite if none is.

    `log_delta` falls about as the profile of a Gaussian of parameter `mu` does: the depth of the tail,
    sqrt(-2 log delta), is nearly a line in epsilon of slope 1/mu, and secants meet it in a few turns.
    """
    wanted = math.sqrt(-2.0 * target)

    def excess(epsilon: float) -> float:
        return wanted - math.sqrt(-2.0 * max(-1e300, min(0.0, log_delta(epsilon))))

    low, high = 0.0, math.inf  # too dear, affordable
    last, slope = (0.0, excess(0.0)), 1.0 / mu
    if last[1] <= 0.0:
        return 0.0
    epsilon = mu * (mu / 2.0 + wanted)
    limit = 10.0 * epsilon
    for turn in range(200):
        f = excess(epsilon)
        if -_CLOSE <= f <= 0.0 or high <= low * (1.0 + 4e-16):
            break
        low, high = (low, epsilon) if f <= 0.0 else (epsilon, high)
        if low > limit:
            return math.inf
        if epsilon != last[0]:
            slope = min(20.0 / mu, max(0.05 / mu, (last[1] - f) / (epsilon - last[0])))
        last = (epsilon, f)
        ahead = epsilon + (f + _CLOSE / 2.0) / slope
        epsilon = (
            ahead if low < ahead < high and turn % 8 < 7 else min(2.0 * low, (low + high) / 2.0)
        )
    else:
        return high  # the last epsilon was not looked at
    return epsilon if f <= 0.0 else high
