"""What objective perturbation costs: its (epsilon, delta) profile.

The mechanism releases argmin J, J(theta) = sum_i l_i(x_i.theta) + ridge/2 |theta|^2 + b.theta with
b ~ N(0, scale^2 I); every row has |grad l_i| <= L and l_i'' |x_i|^2 <= curvature. One more row
changes the density of the output at theta by the factor

    (1 + l''|x|^2 / ridge at most)  *  exp((2 b.g + |g|^2) / (2 scale^2)),   g = l'(x.theta) x.

With mu = L/scale, Z standard normal and r = |g|/L in [0, 1], the privacy loss is at most

    glm        c + mu |Z| + mu^2/2,                           c = log(1 + curvature/ridge)
    one-sided  c + max(0, mu Z + mu^2/2)                      slope never changes sign

Proofs (replace-one too): docs/proofs/objective_perturbation.md. Its Theorem 3 gives a closer bound: one row moves the
noise w of the minimiser to w + gamma(w), where gamma stays between -mu (one-sided: 0) and mu and rises by at most
`flatness` per unit of w. The largest delta over all such gamma is a problem of control in one dimension, solved here
backwards on cells of w and bands of gamma; every choice is rounded to the dear side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpsparse.jit import njit

Array = np.ndarray[Any, np.dtype[np.float64]]


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
        return 1.0 - 2.0 * math.exp(e) * float(ndtr(-mu)) + 1e-15
    if loss == "glm":
        return 4.0 * _gaussian_delta(e, 2.0 * mu)
    if replace_one:
        moving = _gaussian_delta(e, 2.0 * mu) + 2.0 * _gaussian_delta(e, mu)
        return moving + max(0.0, -math.expm1(e))
    if e >= 0:
        return _gaussian_delta(e, mu)
    return 1.0 - 2.0 * math.exp(e) * float(ndtr(-mu / 2)) + 1e-15


def _gaussian_delta(e: float, mu: float) -> float:
    """Profile of the Gaussian mechanism with sensitivity/scale = mu, from above."""
    if mu == 0.0:
        return max(0.0, -math.expm1(e))
    upper = log_ndtr(mu / 2 - e / mu)
    lower = e + log_ndtr(-mu / 2 - e / mu)
    # The two logarithms nearly cancel where mu is small: what they are rounded by is charged.
    rounding = 1e-15 * (1.0 + abs(e) + abs(upper) + abs(lower))
    return float(math.exp(upper + rounding) * -math.expm1(min(0.0, lower - upper - rounding)))


# Cells times bands. More are closer (the error of mu falls with the root) and take as much longer.
_WORK = 3e5


def transport_profile(mu: float, flatness: float, loss: str, epsilons: Array) -> Array:
    """Upper bounds on delta at each epsilon >= 0, of either table against the other."""
    left, right = -7.0, 7.0 if loss == "glm" else 5.0  # w beyond is charged in full
    span = right - left
    low = -mu if loss == "glm" else 0.0
    bands = (mu - low) / flatness
    # A band is what gamma rises in a cell of this width.
    h = max(math.sqrt(span * bands / _WORK), 1e-3)
    count = max(2, math.ceil(bands / h))
    levels, rises = np.linspace(low, mu, count + 1), np.full(count, flatness)
    h = min(h, (mu - low) / count / flatness)
    # At the top gamma may stay for good: a band without width.
    levels, rises = np.append(levels, mu), np.append(rises, flatness)
    cells = math.ceil(span / h)
    edges = left + h * np.arange(cells + 1.0)
    masses = np.diff(ndtr(edges)) * (1.0 - 1e-12)
    g = np.exp(epsilons)
    value = _largest(levels, rises * (1.0 + 1e-12), edges, masses, g, True)
    value += ndtr(left + mu)
    if loss == "glm":
        value += ndtr(mu - right)
        back = _largest(levels, rises, edges, masses * (1.0 + 2e-12), g, False) + 2.0 * ndtr(left)
        value = np.maximum(value, back)
    else:
        value += np.maximum(1.0 + flatness - g, 0.0) * ndtr(-right)
    return np.asarray(np.minimum(1.0, value * (1.0 + 1e-9) + 1e-14))


@njit(cache=True, nogil=True)
def _largest(
    levels: Array, rises: Array, edges: Array, masses: Array, g: Array, forward: bool
) -> Array:
    """The largest integral of (dP - g dQ)_+ (forward) or (dQ - g dP)_+ over the cells, for each g.

    Band b holds levels[b]..levels[b+1]. A path is at most one band further at the end of a cell. What rising through
    a band can add is collected once for it, in the best of the cells that the path spends there: `fresh` is the
    value to go with it, `used` without.
    """
    n, m = len(levels) - 1, len(g)
    h = edges[1] - edges[0]
    root = 1.0 / math.sqrt(2.0 * math.pi)
    fresh, used, gain = np.zeros((n, m)), np.zeros((n, m)), np.zeros((n, m))
    last_fresh, last_used = fresh.copy(), used.copy()
    for j in range(len(edges) - 2, -1, -1):
        left, right = edges[j], edges[j + 1]
        middle, mass = 0.5 * (left + right), masses[j]
        nearest = 0.0 if left <= 0.0 <= right else min(abs(left), abs(right))
        density = root * math.exp(-0.5 * nearest * nearest)
        last_fresh, fresh = fresh, last_fresh
        last_used, used = used, last_used
        for b in range(n - 1, -1, -1):
            low, high = levels[b], levels[min(b + 2, n)]
            # The most and the least of log dP/dQ = -w gamma - gamma^2/2 on the cell and both bands.
            most = math.exp(max(_peak(left, low, high), _peak(right, low, high)))
            ends = min(-left * low, -right * low) - 0.5 * low * low
            least = math.exp(min(ends, min(-left * high, -right * high) - 0.5 * high * high))
            time = (levels[b + 1] - levels[b]) / rises[b]
            mass_p = _mass(middle, low, high, h, root, forward)
            for k in range(m):
                if forward:
                    if least >= g[k]:
                        stay = max(0.0, mass_p - g[k] * mass)
                    else:
                        stay = mass * (1.0 + 2e-12) * max(0.0, most - g[k])
                    rise = max(0.0, most * (1.0 + rises[b]) - g[k]) - max(0.0, most - g[k])
                    gain[b, k] = time * density * rise
                elif g[k] * most <= 1.0:
                    stay = max(0.0, mass - g[k] * mass_p)
                else:
                    stay = mass * max(0.0, 1.0 - g[k] * least)
                # Be in this band at the end of the cell, or in the next one.
                spent, unspent = last_used[b, k], last_fresh[b, k]
                if b + 1 < n:
                    ahead = max(last_fresh[b + 1, k], gain[b + 1, k] + last_used[b + 1, k])
                    spent, unspent = max(spent, ahead), max(unspent, ahead)
                used[b, k] = stay + spent
                fresh[b, k] = max(stay + unspent, gain[b, k] + used[b, k])
    best = np.zeros(m)
    for k in range(m):
        best[k] = np.max(fresh[:, k])
    return best


@njit(inline="always")
def _peak(w: float, low: float, high: float) -> float:
    """The most of -w gamma - gamma^2/2 for gamma between `low` and `high`."""
    gamma = min(max(-w, low), high)
    return -w * gamma - 0.5 * gamma * gamma


@njit(inline="always")
def _mass(middle: float, low: float, high: float, h: float, root: float, most: bool) -> float:
    """The most, or the least, that a cell of width h can have of N(0, 1) after a shift between low and high.

    The mean of the density over a cell is its value in the middle times at most e^{x^2 h^2/24}, at least e^{-h^2/8}.
    """
    if not most:
        x = max(abs(middle + low), abs(middle + high))
        return h * root * math.exp(-0.5 * x * x - h * h / 8.0) * (1.0 - 1e-12)
    if high + middle + 0.5 * h <= 0.0:
        x = middle + high
    elif low + middle - 0.5 * h >= 0.0:
        x = middle + low
    else:
        return h * root
    return h * root * math.exp(-0.5 * x * x + x * x * h * h / 24.0) * (1.0 + 1e-12)
