"""What it costs to run a mechanism a secret random number of times and release the best run only.

Papernot and Steinke (2022), Liu and Talwar (2019). K has the truncated negative binomial law with generating
function f; the base is dominated by N(mu, 1) against N(0, 1); u, v are the probabilities of a run that is not better.

    f'(x) = c (1 - (1-gamma) x)^(-eta-1)          eta = 1: geometric, P(K = k) = gamma (1-gamma)^(k-1)
    tuned densities                               p f'(u), q f'(v)

    Renyi    R'(a) = a mu^2/2 + (1+eta) B + log E[K] / (a-1)
             B = mu sqrt(2 l) - mu^2/2 if mu^2 <= 2 l, else l,  l = log(1/gamma)
    profile  delta'(eps) <= E_Q Psi(r),  r = dP/dQ,  Psi(r) = max_w (g(w) r - e^eps g(w'))_+
             g(w) = f'(1-w),  w' = Phi(Phi^-1(w) + mu)

Psi is the upper envelope of lines. On a cell [w_i, w_i+1] the line g(w_i) r - e^eps g(w'(w_i+1)) lies above all of
them, so the envelope over cells, with slope jumps s_j at r_j, gives delta' <= sum_j s_j G_mu(r_j) in closed form:
fewer cells cost tightness, never truth. Proofs: docs/proofs/tuning.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

Array = np.ndarray[Any, np.dtype[np.float64]]

CELLS = 6000  # within 0.1 % of what 64,000 cells give for mu


def mean_runs(gamma: float, eta: float) -> float:
    """E[K]."""
    return float(_constant(gamma, eta) * gamma ** (-eta - 1.0))


def stopping_curve(mu: float, gamma: float, eta: float, a: Array) -> Array:
    """Renyi divergence of the tuned run at the orders a."""
    log = -math.log(gamma)
    # Without the case split, the bound would fall below the truth once mu^2 > 2 log(1/gamma).
    order = mu * math.sqrt(2.0 * log) - mu * mu / 2.0 if mu * mu <= 2.0 * log else log
    return a * mu * mu / 2.0 + (1.0 + eta) * order + math.log(mean_runs(gamma, eta)) / (a - 1.0)


@lru_cache(maxsize=256)
def stopping_profile(mu: float, gamma: float, eta: float, epsilon: float) -> float:
    """An upper bound on delta(epsilon) of the tuned run; rounding is charged."""
    if epsilon > 600.0 or mu > 20.0:
        return 1.0
    edges = _edges(gamma)
    weight, constant = (1.0 - gamma), _constant(gamma, eta)
    with np.errstate(divide="ignore"):
        ahead = ndtr(ndtri(edges[1:]) + mu)  # the largest 1 - v that the base allows
    slopes = constant * (gamma + weight * edges[:-1]) ** (-eta - 1.0)
    falls = constant * (gamma + weight * ahead) ** (-eta - 1.0) * math.exp(epsilon)
    jumps, at = _envelope(slopes * (1.0 + 1e-13), falls * (1.0 - 1e-13))
    return min(1.0, float(np.sum(jumps * _gaussian_profile(mu, np.log(at)))) * (1.0 + 1e-12))


def _constant(gamma: float, eta: float) -> float:
    if eta == 0.0:
        return (1.0 - gamma) / -math.log(gamma)
    return eta * (1.0 - gamma) / math.expm1(-eta * math.log(gamma))


def _edges(gamma: float) -> Array:
    """0 = w_0 < ... < w_n = 1, evenly spaced in log(gamma + (1-gamma) w), hence in log g."""
    inner = np.linspace(1.0, 0.0, CELLS + 1)[1:-1]
    return np.concatenate([[0.0], (gamma**inner - gamma) / (1.0 - gamma), [1.0]])


def _envelope(slopes: Array, falls: Array) -> tuple[Array, Array]:
    """Slope jumps s_j and places r_j > 0 with max(0, max_i slopes_i r - falls_i) = sum_j s_j (r - r_j)_+."""
    stack: list[tuple[float, float]] = [(0.0, 0.0)]
    starts: list[float] = [0.0]
    for slope, fall in zip(slopes[::-1].tolist(), falls[::-1].tolist(), strict=True):
        while True:
            below, cost = stack[-1]
            if slope <= below:  # parallel to rounding: the dearer line is nowhere above
                if fall >= cost:
                    break
                meet = 0.0
            else:
                meet = (fall - cost) / (slope - below)
            if meet > starts[-1] or len(stack) == 1:
                stack.append((slope, fall))
                starts.append(max(meet, 0.0))
                break
            stack.pop()
            starts.pop()
    steep = np.array([slope for slope, _ in stack])
    return np.diff(steep), np.maximum(np.array(starts[1:]), 1e-300)


def _gaussian_profile(mu: float, y: Array) -> Array:
    """E(r - e^y)_+ for r = dN(mu,1)/dN(0,1) under N(0,1), from above."""
    near, far = ndtr(mu / 2.0 - y / mu), np.exp(y) * ndtr(-mu / 2.0 - y / mu)
    x = np.minimum(np.abs(y) / mu + mu, 40.0)
    return np.asarray(np.maximum(near - far, 0.0) + 1e-15 * (4.0 + x * x) * near)
