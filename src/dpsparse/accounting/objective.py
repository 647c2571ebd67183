"""What objective perturbation costs: Renyi curve and (epsilon, delta) profile.

The mechanism releases argmin J, J(theta) = sum_i l_i(x_i.theta) + ridge/2 |theta|^2 + b.theta with
b ~ N(0, scale^2 I); every row has |grad l_i| <= L and l_i'' |x_i|^2 <= curvature. One more row
changes the density of the output at theta by the factor

    (1 + l''|x|^2 / ridge at most)  *  exp((2 b.g + |g|^2) / (2 scale^2)),   g = l'(x.theta) x.

With mu = L/scale, Z standard normal and r = |g|/L in [0, 1], the privacy loss is at most

    glm        c + mu |Z| + mu^2/2,                           c = log(1 + curvature/ridge)
    one-sided  c + max(0, mu Z + mu^2/2)                      slope never changes sign
    logistic   max_r log(1 + 4 r (1-r) curvature/ridge) + r mu Z + r^2 mu^2/2

The last line is ours: a logistic row with a slope near its bound has almost no curvature, so the
two costs are never paid together. Proofs (replace-one too): docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

Array = np.ndarray[Any, np.dtype[np.float64]]

LOSSES = ("glm", "one-sided", "logistic")

_Z_LAST = 12.0  # grids of Z run from -12 to 12; beyond, closed forms
_Z_CELLS = 6000
_Z_HATS = 400
_R_NODES = 513


def rdp_curve(mu: float, flatness: float, loss: str, replace_one: bool, orders: Array) -> Array:
    """Renyi curve at `orders` > 1 for mu = L/scale and flatness = curvature/ridge."""
    orders = np.asarray(orders, dtype=np.float64)
    k = orders - 1.0
    c = math.log1p(flatness)
    m = 2.0 * mu if replace_one else mu
    if loss == "glm":
        return c + orders * m**2 / 2 + (math.log(2.0) + log_ndtr(k * m)) / k
    # E exp(k max(0, m Z + m^2/2)) = Phi(-m/2) + exp(k (k+1) m^2/2) Phi((k + 1/2) m)
    still = np.full_like(k, log_ndtr(-m / 2))
    moving = k * orders * m**2 / 2 + log_ndtr((k + 0.5) * m)
    curve: Array = c + np.logaddexp(still, moving) / k
    if loss == "logistic" and not replace_one:
        curve = np.minimum(curve, _logistic_rdp(mu, flatness, orders))
    return curve


def delta_profile(
    mu: float, flatness: float, loss: str, replace_one: bool, epsilon: float
) -> float:
    """Smallest delta proven for `epsilon` >= 0."""
    bound = _closed_delta(mu, flatness, loss, replace_one, epsilon)
    if loss == "logistic" and not replace_one:
        bound = min(bound, _logistic_delta(mu, flatness, epsilon))
    return min(1.0, max(0.0, bound))


def delta_profiles(
    mu: float, flatness: float, loss: str, replace_one: bool, epsilons: Array
) -> Array:
    """`delta_profile` at many epsilons at once; at most 1e-9 of it larger."""
    bounds = np.array([_closed_delta(mu, flatness, loss, replace_one, float(e)) for e in epsilons])
    if loss == "logistic" and not replace_one:
        bounds = np.minimum(bounds, _logistic_deltas(mu, flatness, epsilons))
    return np.asarray(np.clip(bounds, 0.0, 1.0))


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


def _logistic_delta(mu: float, flatness: float, epsilon: float) -> float:
    """Upper sum: the loss increases with Z, so every cell is charged its right end."""
    masses, losses, beyond = _logistic_cells(mu, flatness)
    paid = -np.expm1(np.minimum(0.0, epsilon - losses))
    return float(np.sum(masses * paid) + beyond)


def _logistic_deltas(mu: float, flatness: float, epsilons: Array) -> Array:
    """The same sum for many epsilons: the cells that pay are the last ones, as the loss rises."""
    masses, losses, beyond = _logistic_cells(mu, flatness)
    under_p = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    under_q = np.append(np.cumsum((masses * np.exp(-losses))[::-1])[::-1], 0.0)
    first = np.searchsorted(losses, epsilons)
    paid, kept = under_p[first], np.exp(epsilons) * under_q[first]
    # The sums have 6000 positive terms: what rounding can do to their difference is added.
    return np.asarray(np.maximum(paid - kept, 0.0) + 1e-12 * (paid + kept) + beyond)


@lru_cache(maxsize=16)
def _logistic_cells(mu: float, flatness: float) -> tuple[Array, Array, float]:
    """Masses of the cells of Z, the loss at their right ends, and the mass above the last."""
    edges = np.linspace(-_Z_LAST, _Z_LAST, _Z_CELLS + 1)
    losses = _logistic_losses(mu, flatness, edges)[1:]
    edges[0] = -np.inf
    masses = ndtr(-edges[:-1]) - ndtr(-edges[1:])  # upper tails: no cancellation where it matters
    return masses, losses, float(ndtr(-edges[-1]))


def _logistic_rdp(mu: float, flatness: float, orders: Array) -> Array:
    """E e^{k loss(Z)} from above: the loss is convex in Z, so its exponential lies below chords."""
    log_weights, losses = _hats()[1], _losses_at_hats(mu, flatness)
    k = orders - 1.0
    body = logsumexp(np.multiply.outer(k, losses) + log_weights, axis=-1)
    # Above the last node the loss is at most c + mu Z + mu^2/2.
    tail = k * math.log1p(flatness) + k * orders * mu**2 / 2 + log_ndtr(k * mu - _Z_LAST)
    return np.asarray(np.logaddexp(body, tail) / k)


@lru_cache(64)
def _losses_at_hats(mu: float, flatness: float) -> Array:
    """An accountant asks for the same event at one set of orders after another."""
    return _logistic_losses(mu, flatness, _hats()[0])


@cache
def _hats() -> tuple[Array, Array]:
    """Nodes and log E[hat function of each node]; the first node takes the left tail as well."""
    nodes = np.linspace(-_Z_LAST, _Z_LAST, _Z_HATS + 1)
    points, weights = np.polynomial.legendre.leggauss(8)
    width = nodes[1] - nodes[0]
    right = (points + 1.0) / 2.0  # position inside a cell, as the share of its right node
    density = np.exp(-((nodes[:-1, None] + width * right) ** 2) / 2) / math.sqrt(2 * math.pi)
    mass = np.zeros_like(nodes)
    mass[1:] += np.sum(density * (weights * right), axis=1) * width / 2
    mass[:-1] += np.sum(density * (weights * (1.0 - right)), axis=1) * width / 2
    mass[0] += ndtr(-_Z_LAST)
    return nodes, np.log(mass) + 1e-12  # the last digits of the quadrature are charged


def _logistic_losses(mu: float, flatness: float, z: Array) -> Array:
    """Upper bound of max_r log(1 + 4 r (1-r) flatness) + r mu z + r^2 mu^2/2 at each z."""
    r = np.linspace(0.0, 1.0, _R_NODES)
    base = np.log1p(4.0 * flatness * r * (1.0 - r)) + r**2 * mu**2 / 2
    # max_r base(r) + (mu z) r is a Legendre transform: walk the concave hull of the nodes.
    hull = _concave_hull(r, base)
    r, base = r[hull], base[hull]
    slopes = np.diff(base) / np.diff(r)  # decreasing
    best = np.searchsorted(-slopes, mu * z)
    # A maximum between two nodes exceeds the nearer one by at most (h/2)^2/2 * max(-f'').
    bend = (8.0 * flatness + 16.0 * flatness**2) / (8.0 * (_R_NODES - 1) ** 2)
    return np.asarray(base[best] + mu * z * r[best] + bend)


def _concave_hull(x: Array, y: Array) -> list[int]:
    """Indices of the vertices of the upper hull of points sorted by x."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) >= 2:
            j, k = hull[-2], hull[-1]
            if (y[k] - y[j]) * (x[i] - x[j]) > (y[i] - y[j]) * (x[k] - x[j]):
                break
            hull.pop()
        hull.append(i)
    return hull
